"""The pages of a Parquet file, by their own headers.

The metadata at the end of a file repeat the sizes, and may be wrong: what is
read, and how much memory that takes, is in the headers of the pages.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_DATA_HEADERS = (5, 8)  # fields of a header: of data in version 1 and 2
_DEEPEST = 3  # statistics of the header of data of a page
_BOOLEANS, _INTEGERS, _BINARY, _STRUCT = (1, 2), (3, 4, 5, 6), 8, 12
_DAMAGED = "the header of a page is damaged"


class Page(NamedTuple):
    """What the header of a page says."""

    size: int  # bytes, when it is decompressed
    compressed_size: int
    values: int  # 0 of a dictionary


def pages(file: BinaryIO, column) -> Iterator[Page]:
    """The pages of a `pyarrow.parquet.ColumnChunkMetaData`.

    Raises:
        ValueError: a header cannot be read.
    """
    position = column.data_page_offset
    if column.has_dictionary_page:
        position = min(position, column.dictionary_page_offset)
    end = position + column.total_compressed_size
    values = 0
    while position < end and values < column.num_values:
        file.seek(position)
        page = _page(_struct(file))
        values += page.values
        position = file.tell() + page.compressed_size
        yield page


def _page(header):
    values = 0
    try:
        for field in _DATA_HEADERS:
            values += header[field][1] if field in header else 0
        page = Page(header[2], header[3], values)
    except (KeyError, TypeError):
        raise ValueError(_DAMAGED) from None
    if min(page) < 0:
        raise ValueError(_DAMAGED)
    return page


def _struct(file, depth=0) -> dict:
    """The fields of a struct in Thrift's compact protocol, by their number."""
    fields, number = {}, 0
    while head := _byte(file):
        number += head >> 4 if head >> 4 else _integer(file)
        kind = head & 15
        if kind in _INTEGERS:
            fields[number] = _integer(file)
        elif kind == _STRUCT and depth < _DEEPEST:
            fields[number] = _struct(file, depth + 1)
        elif kind == _BINARY:
            file.seek(_unsigned(file), 1)
        elif kind not in _BOOLEANS:
            raise ValueError(_DAMAGED)
    return fields


def _integer(file):
    value = _unsigned(file)
    return value >> 1 ^ -(value & 1)


def _unsigned(file):
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise ValueError(_DAMAGED)


def _byte(file):
    byte = file.read(1)
    if not byte:
        raise ValueError("a page is truncated")
    return byte[0]
