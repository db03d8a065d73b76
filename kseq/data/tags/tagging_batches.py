"""Sentences with a tag for each word to batches of ids."""

from typing import Literal

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.shuffled_batches import shuffled_batches, sizes_of_pieces


def tagging_batches(
    ids: tf.RaggedTensor,
    tags: list[list[str]],
    tagset: tuple[str, ...],
    *,
    batch_pieces: int,
    seed: int,
    max_shapes: int | Literal["auto"] | None = "auto",
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds sentences with similar numbers of pieces and of words. All
    ids are in memory.

    Args:
        ids: (N, W, P) int32, ragged: the pieces of the words, by
            `WordPreprocessor.tokenize_all`.
        tags: of each sentence, one for each word.
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
        ValueError: if a sentence does not have one tag for each word.

    Example:
    >>> ids = tf.ragged.constant([[[4, 5, 6], [5]], [[5, 7]]])
    >>> batches = tagging_batches(
    ...     ids, [["yes", "no"], ["no"]], ("no", "yes"), batch_pieces=64, seed=1
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source_ids"].shape, labels.shape
    (TensorShape([2, 2, 3]), TensorShape([2, 2]))
    """
    lengths = list(map(len, tags))
    if lengths != ids.row_lengths().numpy().tolist():
        raise ValueError("Expected one tag for each word of each sentence.")
    places = {tag: place for place, tag in enumerate(tagset)}
    numbers = tf.RaggedTensor.from_row_lengths(
        tf.constant([places[tag] for row in tags for tag in row], tf.int32),
        tf.constant(lengths, tf.int64),
    )

    def batch(chosen, lengths):
        words, pieces = tf.unstack(tf.cast(lengths, tf.int64))
        source_ids = tf.gather(ids, chosen).to_tensor(
            PAD, shape=(-1, words, pieces)
        )
        tags = tf.gather(numbers, chosen)
        labels = tags.to_tensor(0, shape=(-1, words))
        weights = tf.sequence_mask(
            tags.row_lengths(), tf.shape(labels)[1], tf.float32
        )
        return {"source_ids": source_ids}, labels, weights

    return shuffled_batches(
        (len(lengths),),
        sizes_of_pieces(RaggedArray.of(ids)),
        batch,
        budget=batch_pieces,
        seed=seed,
        max_shapes=max_shapes,
    )
