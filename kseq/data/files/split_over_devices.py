"""One batch for all devices."""

import tensorflow as tf

from kseq.data.files.without_autotuning import without_autotuning


def split_over_devices(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Makes every device, of any machine, compute a part of each batch.

    By default TensorFlow gives each machine different files to read, so that
    the batches depend on the number of machines.

    Args:
        batches: a data set that is the same on all machines.

    Example:
    >>> batches = split_over_devices(tf.data.Dataset.range(9).batch(4))
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return without_autotuning(batches).with_options(options)
