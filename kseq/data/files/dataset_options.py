"""How data sets are made: threads, no autotuning, pairs of strings."""

from collections.abc import Callable

import tensorflow as tf

# For `map`: on all cores, in order. Autotuning would choose the same.
IN_PARALLEL = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": True}

# For functions of `map` without Python control flow on tensors: they are traced
# in half the time.
without_autograph = tf.autograph.experimental.do_not_convert


def disable_autotuning(data: tf.data.Dataset) -> tf.data.Dataset:
    """Disables the autotuning and the optimization of a data set.

    TensorFlow tunes buffers and threads in a thread that sleeps for up to a
    minute. Occasionally that thread misses that its iterator is deleted, and
    the deletion waits for it, for example at the end of training. To optimize
    a data set, it copies all tensors that it reads, such as mapped files.

    Args:
        data: any data set; data sets made from it are not tuned either.

    Example:
    >>> numbers = disable_autotuning(tf.data.Dataset.range(9))
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return data.with_options(options)


def pairs_of_blocks(blocks: Callable) -> tf.data.Dataset:
    """Pairs of scalar strings.

    Args:
        blocks: function without arguments, whose result yields two lists of B
            strings.

    Example:
    >>> pairs = pairs_of_blocks(lambda: [(["a", "b"], ["c", "d"])])
    >>> list(pairs.as_numpy_iterator())
    [(b'a', b'c'), (b'b', b'd')]
    """
    strings = tf.TensorSpec((None,), tf.string)
    found = tf.data.Dataset.from_generator(
        blocks, output_signature=(strings, strings)
    )
    return disable_autotuning(found).unbatch()
