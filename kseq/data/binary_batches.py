"""Endless batches of a task that is drawn."""

import tensorflow as tf

from kseq.data.built_in.algorithms import BinarySequences
from kseq.data.split_over_devices import split_over_devices
from kseq.data.without_autotuning import IN_PARALLEL

_GROUP = 4  # examples of the same length


def binary_batches(task, batch_size: int, seed: int) -> tf.data.Dataset:
    """Batches of random sequences of a task, each drawn once.

    Args:
        task: has `sequences`, see `kseq.data.built_in.algorithms`.
        batch_size: B, at least 1.
        seed: the batch at a position depends on nothing else.

    Returns:
        An endless data set of `(inputs, targets, weights)`: `inputs` is
        `{"source"}`, (B, T, F) float32; targets (B, T, D) and weights (B, T)
        float32, 0 where nothing is asked for. All sequences of a batch have
        the same length.

    Example:
        >>> from kseq.data.built_in.algorithms import CopySequence
        >>> batches = binary_batches(CopySequence(length=(2, 2)), 4, seed=1)
        >>> inputs, targets, weights = next(iter(batches))
        >>> inputs["source"].shape, targets.shape, weights.shape
        (TensorShape([4, 5, 9]), TensorShape([4, 5, 8]), TensorShape([4, 5]))
    """

    def batch(number):
        drawn = task.sequences(batch_size, tf.stack([seed, number]))
        shape = (batch_size, None)
        targets = tf.ensure_shape(drawn.targets, (*shape, task.output_dim))
        source = tf.ensure_shape(drawn.inputs, (*shape, task.input_dim))
        return {"source": source}, targets, drawn.weights

    numbers = tf.data.Dataset.counter(dtype=tf.int32)
    batches = numbers.map(batch, **IN_PARALLEL)
    return split_over_devices(batches.prefetch(2))


def binary_examples(task, count: int, seed: int) -> list[BinarySequences]:
    """Random sequences of a task, to judge a model by.

    Args:
        task: has `sequences`, see `kseq.data.built_in.algorithms`.
        count: at least 1.
        seed: the sequences depend on nothing else; they are others than those
            of `binary_batches` with the same seed.

    Returns:
        A list of `BinarySequences` of one sequence each, NumPy arrays (T, F),
        (T, D) and (T,).
    """
    examples = []
    for number in range(-(-count // _GROUP)):
        drawn = task.sequences(_GROUP, tf.constant([seed, -1 - number]))
        arrays = (part.numpy() for part in drawn)
        examples += map(BinarySequences, *arrays)
    return examples[:count]
