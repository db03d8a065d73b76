"""Answers, token by token."""

from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.penalized_scores import penalized_scores
from kseq.decoding.start_decoding import start_decoding
from kseq.decoding.while_loop import while_loop


class _Generation(NamedTuple):
    tokens: tf.Tensor  # (B * N,), the last ones
    ids: tf.Tensor  # (B * N, T), all so far
    log_probs: tf.Tensor  # (B * N,), their sum
    done: tf.Tensor  # (B * N,)
    state: dict


def generate(search, model, inputs, max_lengths, choose, prefix, answers=1):
    """N answers for each item, token after token, none revised.

    Args:
        search: see `start_decoding`; has `length_penalty` and
            `penalty_offset`.
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes.
        max_lengths: (B,) int32, most tokens of each answer, END included.
        choose: callable, log-probabilities (B * N, V) and the position of the
            token, an int32 scalar -> token ids (B * N,) int32.
        prefix: (B, P) int32 or None, see `ForcedPrefix`.
        answers: int, N.

    Returns:
        Hypotheses in the order of their rows.
    """
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    batch = tf.shape(max_lengths)[0]
    limits = tf.repeat(max_lengths, answers)
    step, state = start_decoding(
        search, model, inputs, max_lengths, prefix, answers
    )

    def advance(last):
        log_probs, state = step(last.tokens, last.ids, last.state)
        length = tf.shape(last.ids)[1]
        tokens = tf.where(last.done, PAD, choose(log_probs, length))
        gained = tf.gather(log_probs, tokens, batch_dims=1)
        ended = (tokens == END) | (length + 1 >= limits)
        return _Generation(
            tokens=tokens,
            ids=tf.concat([last.ids, tokens[:, None]], axis=1),
            log_probs=last.log_probs + tf.where(last.done, 0.0, gained),
            done=last.done | ended,
            state=state,
        )

    start = _Generation(
        tokens=tf.fill((batch * answers,), START),
        ids=tf.zeros((batch * answers, 0), tf.int32),
        log_probs=tf.zeros((batch * answers,)),
        done=limits <= 0,
        state=state,
    )
    end = while_loop(lambda x: ~tf.reduce_all(x.done), advance, start)

    shape = (batch, answers, tf.shape(end.ids)[1])
    ids = tf.ensure_shape(tf.reshape(end.ids, shape), (None, answers, None))
    lengths = tf.math.count_nonzero(ids != PAD, axis=2, dtype=tf.int32)
    scores = penalized_scores(
        tf.reshape(end.log_probs, shape[:2]),
        lengths,
        search.length_penalty,
        search.penalty_offset,
    )
    return Hypotheses(ids, scores, lengths)
