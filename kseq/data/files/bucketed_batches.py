"""Batches of rows of similar lengths, of ids that are in memory."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import tensorflow as tf

from kseq.data.files.batch_shapes import (
    BatchShapes,
    product_of_lengths,
    shapes_wanted,
    whole_rows,
    with_shapes,
)
from kseq.data.files.dataset_options import IN_PARALLEL, split_over_devices

_RATIO = 1.25  # of the longest document in a bucket to the shortest
_BATCHES = 4  # of a bucket in an epoch, at least


def bucketed_batches(
    ids: tf.RaggedTensor,
    batch: Callable,
    *,
    batch_pieces: int,
    seed: int,
    max_shapes: int | Literal["auto"] | None = None,
) -> tf.data.Dataset:
    """An endless stream of shuffled batches of similar lengths.

    Args:
        ids: (N, L, W) int32, ragged; rows without ids are left out.
        batch: function of the numbers of the rows of a batch, (B,) int64, that
            returns the batch; with `max_shapes` also of their lengths L and W,
            (2,) int64.
        batch_pieces: see `document_batches`.
        seed: of the shuffling.
        max_shapes: see `training_batches`.
    """
    most = shapes_wanted(max_shapes)
    has_pieces = tf.where(ids.row_lengths() > 0)[:, 0]
    if most is not None:
        shapes, keys, rows = _shaped_buckets(ids, batch_pieces, most)
        lengths, of_numbers = tf.constant(shapes.lengths), batch

        def batch(chosen):
            return of_numbers(chosen, lengths[keys[chosen[0]]])

    else:
        keys, rows = _buckets(ids, batch_pieces)
    batches = (
        tf.data.Dataset.from_tensor_slices(has_pieces)
        .shuffle(len(has_pieces), seed=seed)
        .repeat()
        .group_by_window(
            lambda number: keys[number],
            lambda key, window: window.batch(rows[key]),
            window_size_func=lambda key: rows[key],
        )
        .map(batch, **IN_PARALLEL)
        .prefetch(2)
    )
    batches = split_over_devices(batches)
    if most is None:
        return batches
    empty = tf.zeros_like(has_pieces[:1])
    return with_shapes(
        batches,
        (
            of_numbers(tf.repeat(empty, count), each)
            for count, each in zip(rows, lengths, strict=True)
        ),
    )


def _buckets(ids, batch_pieces):
    """The bucket of each document, and the batch size of each bucket.

    Documents, sorted by their number of pieces, are split where they become
    longer by a ratio; each part, sorted by the number of sentences, is split
    again. A bucket fills several batches in every epoch; otherwise a document
    of a rare size would always be in a batch with the same others.
    """
    sentences = ids.row_lengths().numpy()
    pieces = tf.reduce_sum(ids.row_lengths(axis=2), axis=1).numpy()
    order = np.argsort(pieces, kind="stable")
    ordered = pieces[order]
    # How many documents of the same length fit into a batch.
    fit = np.maximum(batch_pieces // np.maximum(pieces, 1), 1)
    # How many a bucket needs, by its longest.
    needed = _BATCHES * fit[order]
    keys, rows = np.zeros(len(pieces), np.int64), []
    start = 0
    while start < len(order):
        longest = max(ordered[start], 1) * _RATIO
        end = np.searchsorted(ordered, longest, side="right")
        # Longer documents need a smaller bucket, so there is a first end.
        counts = np.arange(end, len(order) + 1) - start
        end += np.argmax(counts >= needed[end - 1 :])
        if len(order) - end < needed[-1]:
            end = len(order)
        chosen = order[start:end]
        chosen = chosen[np.argsort(sentences[chosen], kind="stable")]
        parts = max(len(chosen) // needed[end - 1], 1)
        for part in np.array_split(chosen, parts):
            keys[part] = len(rows)
            rows.append(min(fit[part].min(), len(part)))
        start = end
    return tf.constant(keys), tf.constant(rows, tf.int64)


def _shaped_buckets(ids, batch_pieces, max_shapes):
    """`BatchShapes`, the shape of each row, the batch size of each shape."""
    widths = ids.row_lengths(axis=2)
    pieces = tf.reduce_sum(widths, axis=1).numpy()
    sizes = tf.stack([ids.row_lengths(), tf.reduce_max(widths, axis=1)], 1)
    shapes = BatchShapes(
        sizes.numpy()[pieces > 0],
        max_shapes=max_shapes,
        size=product_of_lengths,
    )
    shapes.log()
    keys = shapes.number_of(sizes)
    most = np.zeros(len(shapes.lengths), np.int64)
    np.maximum.at(most, keys.numpy(), pieces)
    return shapes, keys, whole_rows(np.maximum(batch_pieces // most, 1))
