"""Endless batches of random sequences of a task."""

from typing import Literal

import numpy as np
import tensorflow as tf

from kseq.data.algorithms import BinarySequences
from kseq.data.files.batch_shapes import BatchShapes, shapes_wanted, with_shapes
from kseq.data.files.dataset_options import IN_PARALLEL, disable_autotuning
from kseq.data.files.stream_positions import numbered_batches
from kseq.user_error import check_integers, check_seed

_GROUP = 4  # examples of the same length
_MEASURED = 512  # batches whose lengths are measured to choose shapes


def binary_batches(
    task,
    batch_size: int,
    seed: int,
    max_shapes: int | Literal["auto"] | None = "auto",
) -> tf.data.Dataset:
    """Batches of random sequences of a task, each drawn once.

    Args:
        task: has `sequences`, see `kseq.data.algorithms`.
        batch_size: B, at least 1.
        seed: it alone determines the batch at each position.
        max_shapes: how many different lengths batches have, see
            `training_batches`; steps are then padded at the end, with weight 0.

    Returns:
        An endless data set of `(inputs, targets, weights)`: `inputs` is
        `{"source"}`, (B, T, F) float32; targets (B, T, D) and weights (B, T)
        float32, 0 where there is no target. All sequences of a batch have the
        same length. With `max_shapes` it has an attribute `shapes`, see
        `training_batches`.

    Example:
        >>> from kseq.data.algorithms import CopySequence
        >>> batches = binary_batches(CopySequence(length=(2, 2)), 4, seed=1)
        >>> inputs, targets, weights = next(iter(batches))
        >>> inputs["source"].shape, targets.shape, weights.shape
        (TensorShape([4, 5, 9]), TensorShape([4, 5, 8]), TensorShape([4, 5]))
    """
    check_integers(batch_size=batch_size)
    check_seed(seed)
    most = shapes_wanted(max_shapes)
    shapes = most and _chosen_shapes(task, seed, most)

    def batch(number, length=None):
        drawn = task.sequences(batch_size, tf.stack([seed, number]))
        if shapes is not None:
            if length is None:
                length = shapes(tf.shape(drawn.weights, tf.int64)[None, 1:])
            drawn = BinarySequences(*(_padded(part, length) for part in drawn))
        shape = (batch_size, None)
        targets = tf.ensure_shape(drawn.targets, (*shape, task.output_dim))
        source = tf.ensure_shape(drawn.inputs, (*shape, task.input_dim))
        return {"source": source}, targets, drawn.weights

    batches = numbered_batches(lambda number: batch(tf.cast(number, tf.int32)))
    if shapes is None:
        return batches
    return with_shapes(batches, (batch(0, n) for [n] in shapes.lengths))


def binary_examples(task, count: int, seed: int) -> list[BinarySequences]:
    """Random sequences of a task, to evaluate a model on.

    Args:
        task: has `sequences`, see `kseq.data.algorithms`.
        count: at least 1.
        seed: it alone determines the sequences, which differ from those of
            `binary_batches` with the same seed.

    Returns:
        A list of `BinarySequences` of one sequence each, NumPy arrays (T, F),
        (T, D) and (T,).
    """
    check_integers(count=count)
    check_seed(seed)
    examples = []
    for number in range(-(-count // _GROUP)):
        drawn = task.sequences(_GROUP, tf.constant([seed, -1 - number]))
        arrays = (part.numpy() for part in drawn)
        examples += map(BinarySequences, *arrays)
    return examples[:count]


def _chosen_shapes(task, seed, max_shapes):
    """`BatchShapes` for the lengths of the first batches."""

    def length(number):
        return tf.shape(task.sequences(1, tf.stack([seed, number])).inputs)[1]

    numbers = disable_autotuning(tf.data.Dataset.range(_MEASURED))
    lengths = numbers.map(lambda n: length(tf.cast(n, tf.int32)), **IN_PARALLEL)
    lengths = np.array([*lengths.as_numpy_iterator()])[:, None]
    shapes = BatchShapes(lengths, max_shapes=max_shapes)
    shapes.log()
    return shapes


def _padded(part, length):
    """Steps (B, T, ...) cut to a length, or with zeros after them."""
    length = tf.cast(tf.reshape(length, ()), tf.int32)
    missing = tf.maximum(length - tf.shape(part)[1], 0)
    rest = [[0, 0]] * (part.shape.rank - 2)
    return tf.pad(part[:, :length], [[0, 0], [0, missing], *rest])
