"""The lengths of the rows of a request, of any kind."""

import numpy as np

from kseq.sources import source_named


def row_lengths(inputs):
    """The length of each row, on which the time of its answer depends.

    Args:
        inputs: dict, name -> `np.ndarray`.

    Returns:
        (B,) int: bytes of text, frames of sound; pictures are all resized
        alike, and have 1. Empty if there are no rows.
    """
    lengths = [
        _lengths(name, array) for name, array in inputs.items() if array.ndim
    ]
    if not lengths or len({len(each) for each in lengths}) > 1:
        return np.zeros(0, np.int64)
    return np.max(lengths, axis=0)


def _lengths(name, array):
    rows = len(array)
    if array.dtype != object:
        return np.full(rows, array.shape[1] if array.ndim > 2 else 1)
    bytes_per_step = source_named(name).bytes_per_step
    if not bytes_per_step:
        return np.ones(rows, np.int64)
    sizes = np.fromiter(map(len, array.ravel()), np.int64, array.size)
    lengths = sizes.reshape(rows, array[:1].size).sum(axis=1)
    return lengths // bytes_per_step


def similar_rows(lengths, most, longest):
    """Splits rows into parts of similar lengths.

    Args:
        lengths: (B,) int.
        most: int, rows of a part.
        longest: int, rows of a part times the length of the longest; one row
            may be longer.

    Returns:
        list of arrays of the numbers of rows.
    """
    parts, part = [], []
    for row in np.argsort(lengths, kind="stable"):
        size = len(part) + 1
        if part and (size > most or size * lengths[row] > longest):
            parts.append(np.array(part))
            part = []
        part.append(row)
    return [*parts, np.array(part)]
