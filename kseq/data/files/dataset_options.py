"""One batch for all devices."""

import tensorflow as tf


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
    return disable_autotuning(batches).with_options(options)


# For `map`: on all cores, in order. Autotuning would choose it by itself.
IN_PARALLEL = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": True}


def disable_autotuning(data: tf.data.Dataset) -> tf.data.Dataset:
    """The same data, read with the buffers and threads that they begin with.

    TensorFlow tunes both in a thread that sleeps for up to a minute. Now and
    then that thread misses that its iterator is deleted, and whoever deletes
    the iterator waits for it: at the end of a training, for example.

    Args:
        data: any data set; what is made of it is not tuned either.

    Example:
    >>> numbers = disable_autotuning(tf.data.Dataset.range(9))
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)
