"""A forced prefix."""

import dataclasses
import math
from typing import Any

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.decoding.while_loop import INTEGER


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedPrefix:
    """Each item's answer begins with the item's own prefix.

    While the prefix lasts, every other token is impossible. Its tokens keep the
    log-probability that the model gives them, so that an answer has the score
    that the model finds for it. The argument `prefix` of a search is this
    constraint; there it takes precedence over all others: a token that the
    prefix forces is possible even if another constraint excludes it.

    Args:
        prefix: (B, P) int32, PAD after each item's own prefix. A row of only
            PAD forces nothing. What exceeds the length limit is cut.

    Call arguments:
        log_probs: (R, V) float32, the same number of rows for each item,
            those of an item consecutive.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `prefix` is not of rank 2.

    Example:
        >>> forced = ForcedPrefix([[4, 5], [5, 0]])
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]] * 2)
        >>> second = forced(log_probs, tf.constant([[4], [5]]))
        >>> np.exp(second).round(1)
        array([[0. , 0. , 0. , 0. , 0. , 0.4],
               [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]], dtype=float32)
    """

    prefix: Any

    def __post_init__(self):
        prefix = tf.cast(tf.convert_to_tensor(self.prefix), INTEGER)
        if prefix.shape.rank != 2:
            raise ValueError(
                "prefix must have the shape (B, P). "
                f"Received: prefix.shape={prefix.shape}"
            )
        object.__setattr__(self, "prefix", prefix)

    def tokens(self, num_rows, position):
        """The tokens forced at a position, (R,) int64, PAD for none."""
        items, length = tf.unstack(tf.shape(self.prefix))
        pad = tf.fill((items, 1), tf.constant(PAD, INTEGER))
        padded = tf.concat([self.prefix, pad], axis=1)
        tokens = padded[:, tf.minimum(position, length)]  # (B,)
        return tf.repeat(tokens, num_rows // tf.maximum(items, 1))

    def __call__(self, log_probs, ids):
        num_rows, position = tf.unstack(tf.shape(ids))
        forced = self.tokens(num_rows, position)[:, None]  # (R, 1)
        vocabulary = tf.cast(tf.range(tf.shape(log_probs)[-1]), INTEGER)
        return tf.where(
            (forced == PAD) | (vocabulary == forced), log_probs, -math.inf
        )

    def get_config(self):
        return {"prefix": self.prefix.numpy().tolist()}
