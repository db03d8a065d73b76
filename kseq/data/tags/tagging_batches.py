"""Sentences with a tag for each word to batches of ids."""

import itertools
from typing import Literal

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.labelled_batches import class_numbers
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.shuffled_batches import shuffled_batches, sizes_of_pieces
from kseq.user_error import check_integers


def tagging_batches(
    ids: tf.RaggedTensor | RaggedArray,
    tags: list[list[str]] | RaggedArray,
    tagset: tuple[str, ...],
    *,
    batch_pieces: int,
    seed: int,
    max_shapes: int | Literal["auto"] | None = "auto",
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds sentences with similar numbers of pieces and of words.

    Args:
        ids: (N, W, P) int, ragged: the pieces of the words, by
            `WordPreprocessor.tokenize_all`, or in files.
        tags: of each sentence, one for each word; or their classes, (N, W) int,
            which may be in files.
        tagset: all tags; the index of one is its class.
        batch_pieces: maximum number of pieces of a batch, unless a single
            sentence has more. Padding does not count.
        seed: of the shuffling, which differs in every epoch.
        max_shapes: how many different lengths (W, P) batches have, see
            `training_batches`.

    Returns:
        Data set of `({"source_ids"}, labels, sample_weight)`, int32
        (B, W, P) and (B, W), and float32 (B, W), 0 at padding. With
        `max_shapes` it has an attribute `shapes`, see `training_batches`.

    Raises:
        ValueError: if a sentence does not have one tag for each word, or an
            argument is out of range.

    Example:
    >>> ids = tf.ragged.constant([[[4, 5, 6], [5]], [[5, 7]]])
    >>> batches = tagging_batches(
    ...     ids, [["yes", "no"], ["no"]], ("no", "yes"), batch_pieces=64, seed=1
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source_ids"].shape, labels.shape
    (TensorShape([2, 2, 3]), TensorShape([2, 2]))
    """
    check_integers(batch_pieces=batch_pieces)
    ids = RaggedArray.of(ids)
    if not isinstance(tags, RaggedArray):
        classes = class_numbers(itertools.chain(*tags), tagset)
        offsets = np.cumsum([0, *map(len, tags)], dtype=np.int64)
        tags = RaggedArray(classes, offsets)
    if not np.array_equal(tags.offsets, ids.offsets):
        raise ValueError("Expected one tag for each word of each sentence.")

    def batch(chosen, lengths):
        words, pieces = tf.unstack(lengths)
        source_ids = ids.gather(chosen).to_tensor(
            PAD, shape=(-1, words, pieces)
        )
        classes = tags.gather(chosen)
        labels = classes.to_tensor(0, shape=(-1, words))
        weights = tf.sequence_mask(
            classes.row_lengths(), tf.shape(labels)[1], tf.float32
        )
        inputs = {"source_ids": tf.cast(source_ids, tf.int32)}
        return inputs, labels, weights

    return shuffled_batches(
        (len(ids),),
        sizes_of_pieces(ids),
        batch,
        budget=batch_pieces,
        seed=seed,
        max_shapes=max_shapes,
    )
