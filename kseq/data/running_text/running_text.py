"""Running text to batches for a language model."""

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.data.files.data_error import DataError
from kseq.data.files.dataset_options import IN_PARALLEL
from kseq.data.files.device_parts import split_over_devices
from kseq.data.files.index_shuffle import index_shuffle
from kseq.data.files.ragged_array import as_tensor
from kseq.data.files.stream_positions import numbered_batches
from kseq.user_error import check_integers, check_seed

_GOLDEN = 2654435769  # 2 ** 32 divided by the golden ratio


def running_text_batches(
    ids: np.ndarray, *, batch_size: int, length: int, seed: int
) -> tf.data.Dataset:
    """An endless stream of batches for `kseq.models.TransformerLM`.

    The running text is cut into rows of the same length without padding, which
    come in random order; each epoch is cut at other positions. The position of
    a batch is the number of rows before it.

    Args:
        ids: (N,) int, see `running_ids`; a file that is mapped into memory
            stays there.
        batch_size: B, rows of a batch.
        length: T, tokens of a row.
        seed: of the order.

    Returns:
        Data set of `({"target_ids"}, labels, sample_weight)`: int32 (B, T),
        int32 (B, T) and float32 (B, T), 0 at START.

    Raises:
        ArgumentError: an argument is out of range.
        DataError: the text is shorter than a row.

    Example:
    >>> ids = np.array([2, 5, 6, 7, 3, 2, 8, 9, 3], "int32")
    >>> batches = running_text_batches(ids, batch_size=2, length=3, seed=1)
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["target_ids"].shape, labels.shape
    (TensorShape([2, 3]), TensorShape([2, 3]))
    """
    check_integers(batch_size=batch_size, length=length)
    check_seed(seed)
    tokens = len(ids) - 1  # that have one after them
    if tokens < length:
        raise DataError(
            f"The text has only {tokens} tokens, fewer than one row. Received: "
            f"length={length}"
        )
    # One row less, so that an epoch can be cut at any position.
    rows = max(tokens // length - 1, 1)
    spare = tokens - rows * length
    ids = as_tensor(ids)
    key = tf.constant(seed % 2**31, tf.int64)

    def rows_at(position):
        places = position + tf.range(batch_size, dtype=tf.int64)
        epochs = places // rows
        keys = tf.stack([tf.fill(epochs.shape, key), epochs, 0 * epochs], 1)
        chosen = index_shuffle(places % rows, rows, keys)
        # Multiples of the golden ratio, modulo 1, are evenly spread.
        offsets = epochs * _GOLDEN % 2**32 * (spare + 1) // 2**32
        return offsets + chosen * length, ()

    def read(starts, _):
        steps = tf.range(length + 1, dtype=tf.int64)
        found = tf.gather(ids, starts[:, None] + steps)
        return _example(tf.cast(found, tf.int32))

    return numbered_batches(rows_at, read, step=batch_size)


def running_text_evaluation(
    ids: np.ndarray, *, batch_size: int, length: int
) -> tf.data.Dataset:
    """All of a text once, in order, each token with up to T tokens before it.

    Args:
        ids: (N,) int32, see `running_ids`.
        batch_size: B, rows of a batch.
        length: T, tokens of a row.

    Returns:
        As `running_text_batches`; the last row is padded.
    """
    check_integers(batch_size=batch_size, length=length)
    rows = -(-(len(ids) - 1) // length)
    padded = np.zeros(rows * length + 1, np.int32)
    padded[: len(ids)] = ids
    places = np.arange(rows)[:, None] * length + np.arange(length + 1)
    examples = tf.data.Dataset.from_tensor_slices(padded[places])
    return split_over_devices(
        examples.batch(batch_size).map(_example, **IN_PARALLEL)
    )


def _example(ids):
    """(B, T + 1) -> inputs, labels, weights: the next token is the label.

    Unlike `teacher_forcing`, which puts START before a target, this cuts rows
    out of a text whose documents already begin with START.
    """
    labels = ids[:, 1:]
    # START always follows END, and PAD follows the last END.
    asked = (labels != START) & (labels != PAD)
    return {"target_ids": ids[:, :-1]}, labels, tf.cast(asked, tf.float32)
