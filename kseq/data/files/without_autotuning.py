"""Data sets whose iterators are deleted at once."""

import tensorflow as tf

# For `map`: on all cores, in order. Autotuning would choose it by itself.
IN_PARALLEL = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": True}


def without_autotuning(data: tf.data.Dataset) -> tf.data.Dataset:
    """The same data, read with the buffers and threads that they begin with.

    TensorFlow tunes both in a thread that sleeps for up to a minute. Now and
    then that thread misses that its iterator is deleted, and whoever deletes
    the iterator waits for it: at the end of a training, for example.

    Args:
        data: any data set; what is made of it is not tuned either.

    Example:
    >>> numbers = without_autotuning(tf.data.Dataset.range(9))
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return data.with_options(options)
