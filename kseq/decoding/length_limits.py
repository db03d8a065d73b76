"""Length limits, each from its own item."""

import tensorflow as tf

from kseq.control_tokens import PAD


def length_limits(source_ids, factor=2.0, offset=10):
    """Most tokens that each item's answer may have, from its own length.

    factor * length + offset, where the length counts real tokens only: an
    item has the same limit alone and beside longer ones.

    Args:
        source_ids: (B, S) int32.
        factor: float.
        offset: int.

    Returns:
        (B,) int32.
    """
    lengths = tf.math.count_nonzero(source_ids != PAD, axis=1)
    return tf.cast(factor * tf.cast(lengths, tf.float32), tf.int32) + offset
