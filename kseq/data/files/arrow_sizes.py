"""Limits of what the columns of Arrow and Parquet files expand to.

A file of a few bytes can have billions of values: nulls take no space, equal
values are stored once, and the items of a list are only counted.
"""

import os
from collections.abc import Iterator

import numpy as np

from kseq.data.files.parquet_pages import pages

_LARGEST_ROW = 2**26  # bytes and values, as of a cell of a CSV
_MOST_ROWS = 2**24  # of a small file
_MOST_VALUES = 2**28  # of a column in a row group of Parquet
_PER_BYTE = 2**8  # rows, or bytes of a column
_LARGEST_BLOCK = 2**28  # bytes of the rows that are decoded together
_VIEW = 4  # numbers of a view of a string, of which the first is its length


def check_rows(rows: int, file_size: int):
    """Raises ValueError if a file has more rows than can be any data."""
    if rows > _MOST_ROWS + _PER_BYTE * file_size:
        raise ValueError(f"it has {rows} rows in {file_size} bytes")


def rows_together(path: str, metadata, names, most: int) -> int:
    """How many rows of a Parquet file are decoded together, at most `most`.

    A value may be as large as a page, and a page of a few bytes the same value
    again and again.

    Args:
        path: of the file.
        metadata: `pyarrow.parquet.FileMetaData`.
        names: of the columns.
        most: int, if the values are small.

    Raises:
        ValueError: columns expand too much.
    """
    groups = list(map(metadata.row_group, range(metadata.num_row_groups)))
    check_rows(metadata.num_rows, os.path.getsize(path))
    largest = 1
    with open(path, "rb") as file:
        for group in groups:
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema.split(".")[0] in names:
                    page = _largest_page(file, column, group.num_rows)
                    largest = max(largest, page)
    return min(max(_LARGEST_BLOCK // largest, 1), most)


def _largest_page(file, column, rows):
    most = min(_MOST_ROWS + 1024 * rows, _MOST_VALUES)
    values = largest = 0
    for page in pages(file, column):
        values, largest = values + page.values, max(largest, page.size)
        if values > most:
            raise ValueError(
                f"{column.path_in_schema} has {values} values in {rows} rows; "
                f"expected at most {most}"
            )
        stored = page.compressed_size
        if page.size > max(_LARGEST_BLOCK, _PER_BYTE * stored):
            raise ValueError(
                f"{column.path_in_schema} expands from {stored} to "
                f"{page.size} bytes"
            )
    return largest


def small_parts(batch) -> Iterator:
    """Cuts a `pyarrow.RecordBatch` into parts that fit into memory.

    Raises:
        ValueError: a row does not.
    """
    if sum(map(_size, batch.columns)) <= _LARGEST_ROW:
        yield batch
    elif batch.num_rows == 1:
        raise ValueError("a row has more than 64 MiB")
    else:
        middle = batch.num_rows // 2
        yield from small_parts(batch.slice(0, middle))
        yield from small_parts(batch.slice(middle))


def _size(array) -> int:
    """Values and bytes of an array as Python has them, at most."""
    from pyarrow import ExtensionArray, types

    kind, count = array.type, len(array)
    if isinstance(array, ExtensionArray):
        return _size(array.storage)
    if types.is_null(kind) or not count:
        return count
    if types.is_dictionary(kind):
        if not len(array.dictionary):
            return count
        indices = array.indices.fill_null(0).to_numpy().astype(np.int64)
        return count + int(_lengths(array.dictionary, indices).sum())
    if types.is_run_end_encoded(kind):
        start = array.find_physical_offset()
        runs = np.arange(start, start + array.find_physical_length())
        return count * (1 + int(_lengths(array.values, runs).max()))
    if types.is_struct(kind):
        fields = map(array.field, range(kind.num_fields))
        return count + sum(map(_size, fields))
    if types.is_fixed_size_list(kind):
        return count + _size(array.flatten())
    if types.is_map(kind):
        return count + sum(
            _size(_items(array, each)) for each in (array.keys, array.items)
        )
    if types.is_list(kind) or types.is_large_list(kind):
        return count + _size(_items(array, array.values))
    return count + int(_lengths(array, np.arange(count)).sum())


def _items(array, values):
    """The items of the lists of an array, which may be a slice."""
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return values[start:end]


def _lengths(array, places) -> np.ndarray:
    """The bytes of some values of an array without lists or objects."""
    from pyarrow import types

    kind = array.type
    if types.is_nested(kind) or types.is_dictionary(kind):
        raise ValueError(f"columns of {kind} are not supported")
    if types.is_null(kind):
        return np.zeros(len(places), np.int64)
    places = places + array.offset
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32)
        # That of a null may be anything.
        return np.maximum(views[places * _VIEW], 0)
    is_large = types.is_large_string(kind) or types.is_large_binary(kind)
    if not (is_large or types.is_string(kind) or types.is_binary(kind)):
        return np.full(len(places), -(-kind.bit_width // 8))
    dtype = np.int64 if is_large else np.int32
    offsets = np.frombuffer(array.buffers()[1], dtype)
    return (offsets[places + 1] - offsets[places]).astype(np.int64)
