"""Features of labelled pictures or recordings to batches."""

from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf

from kseq.data.files.shuffled_batches import shuffled_batches, stored_sizes
from kseq.data.files.stored_features import StoredFeatures
from kseq.user_error import ArgumentError, check_integers


def labelled_batches(
    features: StoredFeatures,
    numbers: list[int],
    labels: list[str],
    classes: tuple[str, ...],
    *,
    batch_tokens: int,
    seed: int,
    balanced: bool = False,
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds recordings of similar lengths.

    Args:
        features: StoredFeatures of pictures or recordings.
        numbers: those of the labelled ones among the features, N.
        labels: their labels, N.
        classes: all labels; the index of one is its class.
        batch_tokens: maximum number of cells or frames of a batch, unless a
            single recording has more. Padding does not count.
        seed: of the shuffling, which differs in every epoch.
        balanced: see `document_batches`.

    Returns:
        Data set of `({"source", "source_mask"}, labels, sample_weight)`,
        float32 (B, S, F) and bool (B, S), int32 (B,), and float32 (B,).

    Raises:
        ArgumentError: if there is not one label for each number, a label is
            none of the classes, or an argument is out of range.

    Example:
    >>> from kseq.data import FramePreprocessor, StoredFeatures
    >>> frames = np.random.default_rng(0).normal(size=(5, 3))
    >>> stored = StoredFeatures(
    ...     ["a", "b"], frames, FramePreprocessor(3), lengths=np.array([2, 3])
    ... )
    >>> batches = labelled_batches(
    ...     stored, [0, 1], ["yes", "no"], ("no", "yes"),
    ...     batch_tokens=3, seed=1,
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source"].shape[-1], labels.shape, weights.numpy()
    (3, TensorShape([1]), array([1.], dtype=float32))
    """
    check_integers(batch_tokens=batch_tokens)
    check_counts(labels, numbers)
    places = tf.constant(numbers)
    targets = class_numbers(labels, classes)
    weights = class_weights(targets, len(classes), balanced)
    targets = tf.constant(targets)
    lengths = features.lengths(tf.RaggedTensor.from_tensor(places[:, None]))

    def batch(chosen, lengths):
        inputs = features.inputs(tf.gather(places, chosen), lengths[0])
        chosen = tf.gather(targets, chosen)
        return inputs, chosen, tf.gather(weights, chosen)

    return shuffled_batches(
        (len(labels),),
        stored_sizes(lengths),
        batch,
        budget=batch_tokens,
        seed=seed,
    )


def class_numbers(labels: Iterable[str], classes: Sequence[str]) -> np.ndarray:
    """(N,) int32, the class of each label.

    Raises:
        ArgumentError: if a label is none of the classes.
    """
    numbers = {label: number for number, label in enumerate(classes)}
    try:
        return np.array([numbers[label] for label in labels], np.int32)
    except KeyError as error:
        raise ArgumentError(
            f"labels must be among the classes. Received: {error.args[0]!r}"
        ) from None


def check_counts(labels, examples):
    """ArgumentError unless there is one label for each example."""
    if len(labels) != len(examples):
        raise ArgumentError(
            "Expected one label for each example. Received: "
            f"{len(labels)} labels, {len(examples)} examples"
        )


def class_weights(labels: np.ndarray, count: int, balanced: bool) -> tf.Tensor:
    """The weight of each class: 1, or by inverse frequency if `balanced`.

    Args:
        labels: (N,) int, classes of examples.
        count: of all classes.
        balanced: see `document_batches`.

    Returns:
        (count,) float32.
    """
    counts = np.bincount(labels, minlength=count)
    weights = np.ones(count)
    if balanced:
        used = counts > 0
        weights[used] = counts.sum() / (used.sum() * counts[used])
    return tf.constant(weights, tf.float32)
