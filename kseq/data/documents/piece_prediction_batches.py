"""Running text to batches for the prediction of pieces."""

import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.stream_positions import numbered_batches

_WIDTH = 64  # pieces of a row
_CANDIDATES = 1024


def piece_prediction_batches(
    ids: tf.RaggedTensor | RaggedArray, *, batch_pieces: int, seed: int
) -> tf.data.Dataset:
    """An endless stream of batches for `kseq.models.PiecePrediction`.

    The documents are one running text, read from random positions, 64 pieces in
    a row. The candidates are 1,024 of its pieces, sampled for each batch in
    proportion to their frequency.

    Args:
        ids: see `document_batches`.
        batch_pieces: maximum number of pieces of a batch, which has at least
            one row.
        seed: of all that is drawn.

    Returns:
        Data set of `({"source_ids", "candidates"}, labels, sample_weight)`,
        int32 (B, T) and (B, 1024), and zeros and ones (B, T - 2, 2).

    Raises:
        DataError: the documents have fewer than three pieces in all.

    Example:
    >>> ids = tf.ragged.constant([[[4, 5, 6, 4], [5, 6]], [[5, 7], [8]]])
    >>> batches = piece_prediction_batches(ids, batch_pieces=64, seed=1)
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source_ids"].shape, labels.shape
    (TensorShape([7, 9]), TensorShape([7, 7, 2]))
    """
    pieces = RaggedArray.of(ids).flat_values()
    count = len(pieces)
    if count < 3:
        raise DataError(
            "Expected three pieces or more to learn from; "
            f"found {count} in all documents."
        )
    width = min(_WIDTH, count)
    rows = max(batch_pieces // width, 1)

    def drawn(number, size, most, purpose):
        key = tf.stack([seed % 2**31, number % 2**31 * 2 + purpose])
        return tf.random.stateless_uniform((size,), key, 0, most, tf.int64)

    def rows_at(number):
        starts = drawn(number, rows, count - width + 1, purpose=0)
        return starts, drawn(number, _CANDIDATES, count, purpose=1)

    def read(starts, candidates):
        rows = tf.shape(starts)[0]
        places = starts[:, None] + tf.range(width, dtype=tf.int64)
        source_ids = tf.cast(tf.gather(pieces, places), tf.int32)
        candidates = tf.cast(tf.gather(pieces, candidates), tf.int32)
        inputs = {
            "source_ids": source_ids,
            "candidates": tf.tile(candidates[None], [rows, 1]),
        }
        shape = rows, width - 2, 2  # in both directions
        return inputs, tf.zeros(shape, tf.int32), tf.ones(shape)

    return numbered_batches(rows_at, read)
