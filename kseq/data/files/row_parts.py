"""Rows of a corpus in files of about the same size."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kseq.data.files.data_error import DataError
from kseq.files.atomic_write import replace_file

PART_SIZE = 2**23  # bytes, about; the same for any number of processes


class RowParts:
    """Writes rows in parts of about `size` bytes while they are read."""

    def __init__(self, folder: Path, size: int):
        self.folder = folder
        self.size = size
        self.starts = [0]  # the number of the first row of each part
        self._lines, self._bytes = [], 0

    def add(self, row: list[Any]):
        """Adds a row of values for JSON."""
        self._lines.append(_line(row))
        self._bytes += len(self._lines[-1])
        if self._bytes >= self.size:
            self.write()

    def write(self):
        """Writes what is not written yet."""
        if self._lines:
            name = f"{len(self.starts) - 1:06}"
            replace_file(self.folder / f"{name}.jsonl", b"".join(self._lines))
            self.starts.append(self.starts[-1] + len(self._lines))
        self._lines, self._bytes = [], 0

    def rows(self) -> Iterator[list[Any]]:
        """Reads all rows that are written."""
        for number in range(len(self.starts) - 1):
            yield from read_rows(self.folder / f"{number:06}.jsonl")


def write_rows(path: str | os.PathLike, rows: Iterable[Any]):
    """Writes a file of rows of values for JSON."""
    replace_file(path, b"".join(map(_line, rows)))


def read_rows(path: str | os.PathLike) -> list[Any]:
    """Reads what `write_rows` has written.

    Raises:
        DataError: the file is broken.
    """
    try:
        with open(path, "rb") as file:
            return list(map(json.loads, file))
    except (ValueError, RecursionError):
        raise DataError(f"{path} is broken.") from None


def _line(row) -> bytes:
    return json.dumps(row).encode() + b"\n"
