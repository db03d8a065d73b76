"""Ranges of bytes that hold whole lines, found in one pass over files."""

import hashlib
from typing import NamedTuple

import numpy as np

from kseq.data.files.compressed_files import open_uncompressed
from kseq.data.files.text_files import BYTE_ORDER_MARK

_BLOCK = 2**20  # bytes that are read together, at most


class LineRange(NamedTuple):
    """A part of a file that begins and ends with a line."""

    path: str
    start: int
    end: int


class LineRanges(NamedTuple):
    """Parts of a text.

    Args:
        parts: the ranges of each part, of one file or of several.
        ends: the number of lines up to the end of each part.
        digests: path -> sha256 of the file.
    """

    parts: list[list[LineRange]]
    ends: list[int]
    digests: dict[str, str]


def split_by_size(paths: list[str], size: int) -> LineRanges:
    """Splits files into parts of about a size, which depend on them alone.

    Args:
        paths: of files that are not compressed.
        size: bytes of a part, at least.
    """
    parts, ends, digests, lines = [], [], {}, 0
    for path in paths:
        start = total = 0
        last = b"\n"
        for block in _blocks(path, digests, min(size, _BLOCK)):
            lines += block.count(b"\n")
            end = total + block.rfind(b"\n") + 1
            total += len(block)
            last = block[-1:]
            if b"\n" in block and end - start >= size:
                parts.append([LineRange(path, start, end)])
                ends.append(lines)
                start = end
        lines += last != b"\n"
        if start < total:
            parts.append([LineRange(path, start, total)])
            ends.append(lines)
    return LineRanges(parts, ends, digests)


def split_at_lines(paths: list[str], ends: list[int]) -> LineRanges:
    """Splits files into parts that end where those of other files do.

    Args:
        paths: of files that are not compressed.
        ends: the number of lines up to the end of each part. If the files have
            more or fewer, the last number of the result is theirs.
    """
    parts, current, digests, lines = [], [], {}, 0
    for path in paths:
        start = total = 0
        last = b"\n"
        for block in _blocks(path, digests):
            count = block.count(b"\n")
            places = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            inside = [n for n in ends[len(parts) :] if 0 < n - lines <= count]
            for number in inside:
                end = total + int(places[number - lines - 1]) + 1
                parts.append([*current, LineRange(path, start, end)])
                current, start = [], end
            lines += count
            total += len(block)
            last = block[-1:]
        lines += last != b"\n"
        if start < total:
            current.append(LineRange(path, start, total))
        if current and lines in ends[len(parts) : len(parts) + 1]:
            parts.append(current)
            current = []
    return LineRanges(parts, [*ends[:-1], lines], digests)


def read_ranges(ranges: list[LineRange]) -> list[bytes]:
    """The lines of all ranges, those of `read_lines`."""
    lines = []
    for path, start, end in ranges:
        with open_uncompressed(path) as file:
            file.seek(start)
            text = file.read(end - start)
        if not start:
            text = text.removeprefix(BYTE_ORDER_MARK)
        lines += text.removesuffix(b"\n").split(b"\n")
    return lines


def _blocks(path, digests, size=_BLOCK):
    digest = hashlib.sha256()
    with open_uncompressed(path) as file:
        while block := file.read(size):
            digest.update(block)
            yield block
    digests[path] = digest.hexdigest()
