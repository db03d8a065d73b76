"""Labelled documents to batches of ids."""

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.labelled_batches import (
    check_counts,
    class_numbers,
    class_weights,
)
from kseq.data.files.ragged_array import RaggedArray, as_tensor
from kseq.data.files.shuffled_batches import shuffled_batches, sizes_of_pieces
from kseq.user_error import check_integers


def document_batches(
    ids: tf.RaggedTensor | RaggedArray,
    labels: list[str] | np.ndarray,
    classes: tuple[str, ...],
    *,
    batch_pieces: int,
    seed: int,
    balanced: bool = False,
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds documents with similar numbers of pieces and of sentences.
    Documents without pieces are left out.

    Args:
        ids: (N, L, W) int, ragged: the pieces of the documents, by
            `DocumentPreprocessor.tokenize_all`, or in files.
        labels: those of the documents, N; or their classes, (N,) int, which
            may be in a file.
        classes: all labels; the index of one is its class.
        batch_pieces: maximum number of pieces of a batch, unless a single
            document has more. Padding does not count.
        seed: of the shuffling, which differs in every epoch.
        balanced: whether to weight labels by inverse frequency: the weights of
            every label then have the same sum.

    Returns:
        Data set of `({"source_ids"}, labels, sample_weight)`, int32
        (B, L, W) and (B,), and float32 (B,).

    Raises:
        ArgumentError: if there is not one label for each document, a label is
            none of the classes, or an argument is out of range.

    Example:
    >>> ids = tf.ragged.constant([[[4, 5, 6, 4], [5, 6]], [[5, 7], [8]]])
    >>> batches = document_batches(
    ...     ids, ["yes", "no"], ("no", "yes"), batch_pieces=64, seed=1
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source_ids"].shape
    TensorShape([2, 2, 4])
    """
    check_integers(batch_pieces=batch_pieces)
    ids = RaggedArray.of(ids)
    check_counts(labels, ids)
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu":
        labels = class_numbers(labels, classes)
    weights = class_weights(labels, len(classes), balanced)
    numbers = as_tensor(labels)

    def batch(chosen, lengths):
        source_ids = ids.gather(chosen).to_tensor(
            PAD, shape=(-1, *tf.unstack(lengths))
        )
        inputs = {"source_ids": tf.cast(source_ids, tf.int32)}
        targets = tf.gather(numbers, chosen)
        return inputs, targets, tf.gather(weights, targets)

    return shuffled_batches(
        (len(labels),),
        sizes_of_pieces(ids),
        batch,
        budget=batch_pieces,
        seed=seed,
    )
