"""The result of a search."""

from typing import NamedTuple

import tensorflow as tf


class Hypotheses(NamedTuple):
    """The result of a search: N answers for each of B items, best first.

    Attributes:
        ids: (B, N, T) int32, END included, PAD after it. An answer that
            reached its length limit has no END.
        scores: (B, N) float32, the sum of the log-probabilities divided by
            the length penalty; -inf where there are fewer than N answers.
        lengths: (B, N) int32, tokens of each answer, END included.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    lengths: tf.Tensor
