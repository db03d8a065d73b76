"""The parts of each batch that devices and machines read."""

from collections.abc import Callable

import tensorflow as tf

from kseq.data.files.dataset_options import (
    IN_PARALLEL,
    disable_autotuning,
    without_autograph,
)


def split_over_devices(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Makes every device, of any machine, get a part of each batch.

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


def read_in_parts(rows: tf.data.Dataset, read: Callable) -> tf.data.Dataset:
    """Batches of which each machine reads the rows of its devices alone.

    Args:
        rows: `(rows, others)`: a nest of (B, ...) tensors, which are divided,
            such as the numbers of the examples of a batch; and a nest of
            tensors that all parts need. It is the same on all machines.
        read: function of both that returns a batch, (B, ...) tensors, or a part
            of it.

    Returns:
        Data set of whole batches. Its attribute `parts` is a function of a
        `tf.distribute.InputContext` that returns the data set of one machine:
        of each batch, one part after the other for each of its devices.

    Example:
    >>> rows = tf.data.Dataset.range(8).batch(4).map(lambda rows: (rows, ()))
    >>> batches = read_in_parts(rows, lambda rows, others: 10 * rows)
    >>> second_of_two = tf.distribute.InputContext(2, 1, 2)
    >>> for part in batches.parts(second_of_two):
    ...     print(part.numpy())
    [20 30]
    [60 70]
    """

    def batches_of(rows):
        batches = rows.map(without_autograph(read), **IN_PARALLEL).prefetch(2)
        return split_over_devices(batches)

    def parts(context):
        devices = context.num_replicas_in_sync

        def split(rows, others):
            def part(number):
                return _part(rows, number, devices), others

            own = tf.data.Dataset.range(
                context.input_pipeline_id, devices, context.num_input_pipelines
            )
            return own.map(without_autograph(part))

        return batches_of(rows.flat_map(without_autograph(split)))

    batches = batches_of(rows)
    batches.parts = parts
    batches.kept = []
    return batches


def _part(rows, number, devices):
    """The rows of a part: all but the last parts have the same number."""

    def part(tensor):
        count = tf.shape(tensor, tf.int64)[0]
        size = -(-count // devices)
        start = tf.minimum(number * size, count)
        own = tensor[start : tf.minimum(start + size, count)]
        if tensor.shape[0] is not None and tensor.shape[0] % devices == 0:
            own.set_shape([tensor.shape[0] // devices, *tensor.shape[1:]])
        return own

    return tf.nest.map_structure(part, rows)


def distribute(batches: tf.data.Dataset, strategy):
    """Batches for `model.fit` with a strategy.

    Keras would have each machine read whole batches, and TensorFlow would
    rewrite the data set to divide them: it copies all tensors that the data set
    reads, such as mapped files.

    Args:
        batches: endless, of `read_in_parts`; or any other data set, which is
            returned.
        strategy: `tf.distribute.Strategy` of the model.

    Returns:
        `tf.distribute.DistributedDataset` if there are several devices.
    """
    if strategy.num_replicas_in_sync == 1 or not hasattr(batches, "parts"):
        return batches

    def parts(context):
        # Of a data set that might end, all machines wait for each other in
        # each step, to find out whether one of them has no more.
        endless = tf.data.experimental.assert_cardinality(
            tf.data.INFINITE_CARDINALITY
        )
        part = batches.parts(context).apply(endless)
        with_options = part.with_options

        # TensorFlow's iterator over devices adds options to its data set, and
        # frees the result before the thread that reads it has stopped: if
        # nothing else kept the result, the process would crash.
        def kept_with_options(options):
            batches.kept.append(with_options(options))
            return batches.kept[-1]

        part.with_options = kept_with_options
        return part

    return strategy.distribute_datasets_from_function(parts)
