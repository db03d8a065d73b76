"""Greedy search."""

import tensorflow as tf

from kseq.decoding.generate import generate


def greedy_search(model, source_ids, max_lengths, length_penalty=1.0):
    """The likeliest token at every step.

    Args:
        model: anything with `encode` and `decode_step`.
        source_ids: (B, S) int32.
        max_lengths: (B,) int32, most tokens of each answer, END included.
        length_penalty: float, see `penalized_scores`.

    Returns:
        Hypotheses, N = 1.
    """

    def likeliest(log_probs, position):
        return tf.argmax(log_probs, axis=-1, output_type=tf.int32)

    return generate(model, source_ids, max_lengths, likeliest, length_penalty)
