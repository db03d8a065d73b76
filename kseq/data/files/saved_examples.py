"""Names, texts and numbers of prepared pictures or recordings."""

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kseq.data.files.dataset_options import pairs_of_blocks
from kseq.data.files.ragged_array import RaggedArray, check_counts, mapped

_BLOCK = 1024  # rows that are read together
_PART = 2**20  # bytes in which separators are looked for together


def save_examples(
    path: str | os.PathLike,
    names: Sequence[str],
    texts: Sequence[str],
    numbers: Sequence[int],
    media: Callable[[str], bytes] | None = None,
):
    """Writes files that begin with a path.

    Args:
        path: see above.
        names: of the pictures or recordings.
        texts: of each, without newlines.
        numbers: of their features.
        media: function of a name, the bytes of a file that is to be saved, or
            None.
    """
    Path(f"{path}.names").write_bytes(b"\0".join(map(os.fsencode, names)))
    Path(f"{path}.texts").write_bytes("\n".join(texts).encode())
    np.array(numbers, np.int64).tofile(f"{path}.numbers")
    if media is None:
        return
    ends = [0]
    with open(f"{path}.files.values", "wb") as file:
        for name in names:
            file.write(media(name))
            ends.append(file.tell())
    np.array(ends, np.int64).tofile(f"{path}.files.offsets")


class _SavedRows(Sequence):
    """Rows of a file, of which only those that are read take memory.

    Args:
        path: of the file.
        separator: the byte between two rows.
        decode: function of the bytes of a row, that returns the item.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        separator: bytes,
        decode: Callable[[bytes], Any],
    ):
        self._bytes = mapped(path, "uint8", (os.path.getsize(path),))
        size = len(self._bytes)
        ends = [
            start + np.flatnonzero(self._bytes[start : start + _PART] == code)
            for code in separator
            for start in range(0, size, _PART)
        ]
        self._starts = np.concatenate([[-1], *ends, [size]]) + 1
        self._separator = separator
        self._decode = decode

    def __len__(self):
        return len(self._starts) - 1

    def __getitem__(self, place):
        numbers = range(len(self))[place]
        if isinstance(place, slice):
            return [self[number] for number in numbers]
        return self._between(numbers, numbers + 1)[0]

    def __iter__(self):
        for start in range(0, len(self), _BLOCK):
            yield from self._between(start, min(start + _BLOCK, len(self)))

    def _between(self, start, end):
        content = self._bytes[self._starts[start] : self._starts[end] - 1]
        rows = content.tobytes().split(self._separator)
        return list(map(self._decode, rows))


def open_examples(
    path: str | os.PathLike, count: int, decode: Callable = bytes.decode
):
    """What `save_examples` has written: its arguments after the path.

    Args:
        path: see `save_examples`.
        count: how many features there are.
        decode: function of the bytes of a text.

    Raises:
        DataError: the files do not fit each other or the features.
    """
    names = _SavedRows(f"{path}.names", b"\0", os.fsdecode)
    texts = _SavedRows(f"{path}.texts", b"\n", decode)
    numbers = np.fromfile(f"{path}.numbers", np.int64)
    are_there = (numbers >= 0) & (numbers < count)
    check_counts(path, *map(len, (names, texts, numbers)), are_there.sum())
    if not os.path.isfile(f"{path}.files.values"):
        return names, texts, numbers, None
    size = os.path.getsize(f"{path}.files.values")
    rows = RaggedArray.open(f"{path}.files", "uint8", (size,))
    places = {name: place for place, name in enumerate(names)}

    def media(name):
        return rows[places[name]].tobytes()

    return names, texts, numbers, media


def numbered_texts(
    numbers: Sequence[int], texts: Sequence[str | list[str]]
) -> tf.data.Dataset:
    """Scalar strings (number, text), which are not held in memory.

    A number has one text, or a list of them.
    """

    def pairs():
        for number, each in zip(numbers, texts, strict=True):
            for text in [each] if isinstance(each, str) else each:
                yield str(number), text

    def blocks():
        rest = pairs()
        while block := list(itertools.islice(rest, _BLOCK)):
            yield tuple(zip(*block, strict=True))

    return pairs_of_blocks(blocks)
