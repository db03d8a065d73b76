"""One answer an item, token by token."""

from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.growing_loop import growing_loop
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.next_log_probs import next_log_probs
from kseq.decoding.penalized_scores import penalized_scores


class _Generation(NamedTuple):
    tokens: tf.Tensor  # (B,), the last ones
    ids: tf.Tensor  # (B, T), all so far
    log_probs: tf.Tensor  # (B,), their sum
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

    def advance(last):
        logits, state = model.decode_step(last.tokens, last.state)
        log_probs = next_log_probs(logits)
        length = tf.shape(last.ids)[1]
        tokens = tf.where(last.done, PAD, choose(log_probs, length))
        gained = tf.gather(log_probs, tokens, batch_dims=1)
        ended = (tokens == END) | (length + 1 >= max_lengths)
        return _Generation(
            tokens=tokens,
            ids=tf.concat([last.ids, tokens[:, None]], axis=1),
            log_probs=last.log_probs + tf.where(last.done, 0.0, gained),
            done=last.done | ended,
            state=state,
        )

    batch = tf.shape(source_ids)[0]
    start = _Generation(
        tokens=tf.fill((batch,), START),
        ids=tf.zeros((batch, 0), tf.int32),
        log_probs=tf.zeros((batch,)),
        done=max_lengths <= 0,
        state=model.encode(source_ids),
    )
    end = growing_loop(lambda x: ~tf.reduce_all(x.done), advance, start)

    ids = end.ids
    lengths = tf.math.count_nonzero(ids != PAD, axis=1, dtype=tf.int32)
    scores = penalized_scores(end.log_probs, lengths, length_penalty)
    return Hypotheses(ids[:, None], scores[:, None], lengths[:, None])
