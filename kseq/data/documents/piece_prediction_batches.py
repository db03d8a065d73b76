"""Running text to batches for the prediction of pieces."""

import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.stream_positions import numbered_batches
from kseq.user_error import check_integers, check_seed

_WIDTH = 64  # pieces of a row
_CANDIDATES = 1024
# As in BERT: of a row, and of what is predicted.
_MASKED_WIDTH = 256
_MASKED = 0.15
_HIDDEN, _REPLACED = 0.8, 0.9


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
    text = _RunningText(ids, _WIDTH, batch_pieces, seed)

    def rows_at(number):
        return text.starts(number), text.candidates(number)

    def read(starts, candidates):
        source_ids = text.rows(starts)
        shape = tf.shape(starts)[0], text.width - 2, 2  # in both directions
        inputs = {
            "source_ids": source_ids,
            "candidates": text.in_each_row(candidates, source_ids),
        }
        return inputs, tf.zeros(shape, tf.int32), tf.ones(shape)

    return numbered_batches(rows_at, read)


def masked_prediction_batches(
    ids: tf.RaggedTensor | RaggedArray, *, batch_pieces: int, seed: int
) -> tf.data.Dataset:
    """An endless stream of batches for `kseq.models.MaskedPrediction`.

    Rows are as in `piece_prediction_batches`, but of 256 pieces, so that more
    positions are seen. Of each row 15 % of the pieces are to be predicted: 80 %
    of them are masked by 0, 10 % replaced by another piece of the text and
    10 % left as they are.

    Args:
        ids: see `document_batches`.
        batch_pieces: maximum number of pieces of a batch, which has at least
            one row.
        seed: of all that is drawn.

    Returns:
        Data set of `({"source_ids", "places", "pieces", "candidates"}, labels,
        sample_weight)`: int32 (B, T), (B, M), (B, M) and (B, 1024), and zeros
        and ones (B, M).

    Raises:
        DataError: the documents have fewer than three pieces in all.

    Example:
    >>> ids = tf.ragged.constant([[[4, 5, 6, 4], [5, 6]], [[5, 7], [8]]])
    >>> batches = masked_prediction_batches(ids, batch_pieces=64, seed=1)
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source_ids"].shape, labels.shape
    (TensorShape([7, 9]), TensorShape([7, 1]))

    Reference:
        Devlin et al. 2019, arXiv:1810.04805, section 3.1.
    """
    text = _RunningText(ids, _MASKED_WIDTH, batch_pieces, seed)
    masked = max(round(_MASKED * text.width), 1)

    def rows_at(number):
        size = text.row_count, masked
        order = text.uniform(number, (text.row_count, text.width), purpose=2)
        places = tf.sort(tf.math.top_k(order, masked).indices)
        how = text.uniform(number, size, purpose=3)
        others = text.drawn(number, size, text.count, purpose=4)
        return (
            (text.starts(number), places, how, others),
            text.candidates(number),
        )

    def read(drawn, candidates):
        starts, places, how, others = drawn
        source_ids = text.rows(starts)
        pieces = tf.gather(source_ids, places, batch_dims=1)
        seen = tf.where(how < _REPLACED, text.at(others), pieces)
        seen = tf.where(how < _HIDDEN, 0, seen)
        shape = tf.shape(places)
        rows = tf.broadcast_to(tf.range(shape[0])[:, None], shape)
        inputs = {
            "source_ids": tf.tensor_scatter_nd_update(
                source_ids, tf.stack([rows, places], axis=-1), seen
            ),
            "places": places,
            "pieces": pieces,
            "candidates": text.in_each_row(candidates, source_ids),
        }
        return inputs, tf.zeros(shape, tf.int32), tf.ones(shape)

    return numbered_batches(rows_at, read)


class _RunningText:
    """The pieces of all documents, and what is drawn for a batch of them."""

    def __init__(self, ids, width, batch_pieces, seed):
        check_integers(batch_pieces=batch_pieces)
        check_seed(seed)
        self._pieces = RaggedArray.of(ids).flat_values()
        self._seed = seed
        self.count = len(self._pieces)
        if self.count < 3:
            raise DataError(
                "Expected three pieces or more to learn from; "
                f"found {self.count} in all documents."
            )
        self.width = min(width, self.count)
        self.row_count = max(batch_pieces // self.width, 1)

    def _key(self, number, purpose):
        group, of_group = divmod(purpose, 2)
        seed = self._seed % 2**31 + group * 2**31
        return tf.stack([seed, number % 2**31 * 2 + of_group])

    def uniform(self, number, size, *, purpose):
        return tf.random.stateless_uniform(size, self._key(number, purpose))

    def drawn(self, number, size, most, *, purpose):
        key = self._key(number, purpose)
        return tf.random.stateless_uniform(size, key, 0, most, tf.int64)

    def starts(self, number):
        most = self.count - self.width + 1
        return self.drawn(number, (self.row_count,), most, purpose=0)

    def candidates(self, number):
        return self.drawn(number, (_CANDIDATES,), self.count, purpose=1)

    def at(self, places):
        return tf.cast(tf.gather(self._pieces, places), tf.int32)

    def rows(self, starts):
        return self.at(starts[:, None] + tf.range(self.width, dtype=tf.int64))

    def in_each_row(self, candidates, source_ids):
        """So that a batch can be split."""
        return tf.tile(self.at(candidates)[None], [tf.shape(source_ids)[0], 1])
