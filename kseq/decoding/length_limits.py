"""Length limits, each from its own item."""

import tensorflow as tf


def length_limits(lengths, factor=2.0, offset=10):
    """Maximum answer length of each item, from its own length.

    factor * length + offset: an item has the same limit alone and in a batch
    with longer ones.

    Args:
        lengths: (B,) int, real tokens or frames of each source.
        factor: float.
        offset: int.

    Returns:
        (B,) int32.

    Example:
        >>> length_limits(tf.constant([3, 20])).numpy()
        array([16, 50], dtype=int32)
    """
    return tf.cast(factor * tf.cast(lengths, tf.float32), tf.int32) + offset
