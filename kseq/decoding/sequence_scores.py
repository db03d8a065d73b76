"""Scores of given answers."""

import tensorflow as tf

from kseq.decoding.penalized_scores import penalized_scores


def sequence_scores(
    logits, labels, sample_weight, length_penalty=1.0, penalty_offset=5.0
):
    """The scores that a search gives to these answers.

    Args:
        logits: (B, T, V) float, of a model that was fed the answers.
        labels: (B, T) int32, the answers, END included.
        sample_weight: (B, T) float32, 1 at the tokens of the answers and 0
            at padding.
        length_penalty: float, see `penalized_scores`.
        penalty_offset: float, see `penalized_scores`.

    Returns:
        (B,) float32, the sums of the log-probabilities divided by the length
        penalty.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)
    )  # (B, T)
    log_probs = -tf.reduce_sum(losses * sample_weight, axis=1)
    lengths = tf.reduce_sum(sample_weight, axis=1)
    return penalized_scores(log_probs, lengths, length_penalty, penalty_offset)
