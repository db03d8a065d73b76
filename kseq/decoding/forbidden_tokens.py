"""Forbidden tokens."""

import dataclasses
import math

import tensorflow as tf

from kseq.check_integers import check_integers


@dataclasses.dataclass(frozen=True)
class ForbiddenTokens:
    """Tokens that are never generated.

    Args:
        ids: sequence of int, the tokens.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `ids` are not token ids, or not in the vocabulary.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> forbidden = ForbiddenTokens([1, 4])
        >>> np.exp(forbidden(log_probs, tf.zeros((1, 0), tf.int32))).round(1)
        array([[0.1, 0. , 0.1, 0.1, 0. , 0.4]], dtype=float32)
    """

    ids: tuple

    is_row_wise = True

    def __post_init__(self):
        if not isinstance(self.ids, tuple | list):
            raise ValueError(
                f"ids must be a list of integers. Received: ids={self.ids}"
            )
        for token in self.ids:
            check_integers(ids=token, minimum=0)
        object.__setattr__(self, "ids", tuple(self.ids))

    def __call__(self, log_probs, ids):
        size = log_probs.shape[-1]
        if size is not None and max(self.ids, default=0) >= size:
            raise ValueError(
                f"Forbidden tokens must be below the vocabulary size {size}. "
                f"Received: ids={list(self.ids)}"
            )
        forbidden = tf.constant(self.ids, tf.int32)[:, None]
        vocabulary = tf.range(tf.shape(log_probs)[-1])
        is_forbidden = tf.reduce_any(vocabulary == forbidden, axis=0)  # (V,)
        return tf.where(is_forbidden, -math.inf, log_probs)

    def get_config(self):
        return {"ids": list(self.ids)}
