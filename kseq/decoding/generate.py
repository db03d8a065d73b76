"""One answer an item, token by token."""

from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.growing_loop import growing_loop
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.next_log_probs import next_log_probs
from kseq.decoding.penalized_scores import penalized_scores


class _Generation(NamedTuple):
    ids: tf.Tensor  # (B, 1 + T), START first
    log_probs: tf.Tensor  # (B,), of the tokens so far
    done: tf.Tensor  # (B,)
    state: dict


def generate(model, source_ids, max_lengths, choose, length_penalty):
    """One answer for each item, token after token, none taken back.

    Args:
        model: anything with `encode` and `decode_step`.
        source_ids: (B, S) int32.
        max_lengths: (B,) int32, most tokens of each answer, END included.
        choose: callable, log-probabilities (B, V) and the position of the
            token, an int32 scalar -> token ids (B,) int32.
        length_penalty: float.

    Returns:
        Hypotheses, N = 1.
    """

    def advance(generation):
        ids, state = generation.ids, generation.state
        logits, state = model.decode_step(ids[:, -1], state)
        log_probs = next_log_probs(logits)
        position = tf.shape(ids)[1] - 1
        tokens = tf.where(generation.done, PAD, choose(log_probs, position))
        gained = tf.gather(log_probs, tokens, batch_dims=1)
        gained = tf.where(generation.done, 0.0, gained)
        ended = (tokens == END) | (position + 1 >= max_lengths)

        return _Generation(
            ids=tf.concat([ids, tokens[:, None]], axis=1),
            log_probs=generation.log_probs + gained,
            done=generation.done | ended,
            state=state,
        )

    end = growing_loop(
        lambda generation: ~tf.reduce_all(generation.done),
        advance,
        _Generation(
            ids=tf.fill((tf.shape(source_ids)[0], 1), START),
            log_probs=tf.zeros_like(max_lengths, tf.float32),
            done=max_lengths <= 0,
            state=model.encode(source_ids),
        ),
    )
    ids = end.ids[:, 1:]
    lengths = tf.math.count_nonzero(ids != PAD, axis=1, dtype=tf.int32)
    scores = penalized_scores(end.log_probs, lengths, length_penalty)
    return Hypotheses(ids[:, None], scores[:, None], lengths[:, None])
