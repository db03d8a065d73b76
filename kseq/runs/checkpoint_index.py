"""The index of a checkpoint, checked before TensorFlow reads it.

TensorFlow ends the process for a shape that is impossible, and allocates what
a shape says.
"""

import math
import struct
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto

from kseq.files.regular_file import read_regular

_FOOTER = 48  # bytes at the end: two places of blocks, and a number
_TRAILER = 5  # bytes after a block: how it is compressed, and a checksum
_MOST_DIMENSIONS = 254


def check_index(prefix):
    """Checks the shapes and sizes of the tensors in a checkpoint.

    Args:
        prefix: str or path, that of its files: of `.index` and `.data-*`.

    Raises:
        ValueError: if the index is broken, or the tensors would take more
            memory than their files.
        OSError: if it cannot be read.

    Reference:
        TensorFlow, tensor_bundle.h and lib/io/table_format.txt.
    """
    prefix = Path(prefix)
    index = read_regular(f"{prefix}.index")
    try:
        entries = list(map(BundleEntryProto.FromString, _values(index)))
    except Exception:  # DecodeError is a class of each implementation
        raise ValueError("its index is broken") from None
    needed = sum(map(_size, entries))
    available = sum(
        file.stat().st_size
        for file in prefix.parent.iterdir()
        if file.name.startswith(f"{prefix.name}.data-") and file.is_file()
    )
    if needed > available:
        raise ValueError(
            f"its weights would take {needed} bytes, but their files have "
            f"{available}"
        )


def _size(entry):
    """The bytes of a tensor."""
    sizes = [dim.size for dim in entry.shape.dim]
    if min(sizes, default=0) < 0 or len(sizes) > _MOST_DIMENSIONS:
        raise ValueError("a tensor has an impossible shape")
    # Zeros hide no product that overflows.
    if math.prod(max(size, 1) for size in sizes) >= 2**63:
        raise ValueError("a tensor has an impossible shape")
    width = tf.dtypes.as_dtype(entry.dtype).size
    size = math.prod(sizes) * (width or 1)
    is_whole = not entry.slices
    if is_whole and (size > entry.size if not width else size != entry.size):
        raise ValueError("a tensor does not have the size of its shape")
    return max(size, entry.size)


def _values(index):
    """The values of a table, but for the first, that of its header."""
    _, place = _place_of_block(index[-_FOOTER:], 0)  # of what describes it
    (start, size), _ = _place_of_block(index[-_FOOTER:], place)
    pairs = [
        pair
        for _, value in _pairs(_block(index, start, size))
        for pair in _pairs(_block(index, *_place_of_block(value, 0)[0]))
    ]
    return [value for key, value in pairs if key]


def _block(index, start, size):
    if index[start + size] or start + size + _TRAILER > len(index):
        raise IndexError  # it is compressed, or truncated
    return index[start : start + size]


def _pairs(block):
    """The keys and values of a block."""
    count = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 * (count + 1)
    if end < 0:
        raise IndexError
    key, place, places, pairs = b"", 0, {0}, []
    while place < end:
        places.add(place)
        shared, place = _number(block, place)
        own, place = _number(block, place)
        length, place = _number(block, place)
        key = key[:shared] + block[place : place + own]
        place += own
        pairs.append((key, block[place : place + length]))
        place += length
    # Where TensorFlow begins to read, too.
    if place != end or {*struct.unpack(f"<{count}I", block[end:-4])} - places:
        raise IndexError
    return pairs


def _place_of_block(content, place):
    """((start, size), the place after them)."""
    start, place = _number(content, place)
    size, place = _number(content, place)
    return (start, size), place


def _number(content, place):
    """A number of 7 bits a byte, and the place after it."""
    found = 0
    for shift in range(0, 64, 7):
        byte = content[place]
        place += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, place
    raise IndexError
