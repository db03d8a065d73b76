"""One batch for all devices."""

import tensorflow as tf


def split_over_devices(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Says that every device, of any machine, computes a part of each batch.

    TensorFlow would rather give each machine other files to read, and then
    the batches would depend on their number.

    Args:
        batches: a data set that is the same on all machines.

    Example:
    >>> batches = split_over_devices(tf.data.Dataset.range(9).batch(4))
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return batches.with_options(options)
