"""Lines of files: in Python to look at them, in tf.data to train on them.

A file is UTF-8, plain or .gz, with or without a byte order mark, and split
at newlines only.
"""

import glob
import gzip
import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from kseq.data.data_error import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_LINE = 65_536  # bytes; a longer line is not a sentence


class Line(NamedTuple):
    """A line and its position."""

    text: bytes
    path: str
    number: int

    def __str__(self):
        return f"{self.path}:{self.number}"


def read_lines(pattern: str | os.PathLike) -> Iterator[Line]:
    """The lines of a file, or of all files that a pattern matches."""
    for path in _matching_files(pattern):
        line = None
        for line in _read_file(path):
            yield line
        if line is None:
            raise DataError(f"{path} is empty.")


def line_dataset(pattern: str | os.PathLike) -> tf.data.Dataset:
    """The same lines as a data set of strings."""
    paths = _matching_files(pattern)
    compressions = ["GZIP" if _is_compressed(path) else "" for path in paths]
    files = tf.data.Dataset.from_tensor_slices((paths, compressions))
    return files.flat_map(_file_dataset)


def _matching_files(pattern) -> list[str]:
    pattern = os.fspath(pattern)
    if os.path.exists(pattern):
        return [pattern]
    if paths := sorted(glob.glob(pattern)):
        return paths
    raise DataError(f"There is no file {pattern}.")


def _is_compressed(path) -> bool:
    return path.endswith(".gz")


def _read_file(path) -> Iterator[Line]:
    try:
        with (gzip.open if _is_compressed(path) else open)(path, "rb") as file:
            for number, text in enumerate(file, start=1):
                if number == 1:
                    text = text.removeprefix(BYTE_ORDER_MARK)
                yield Line(text.removesuffix(b"\n"), path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is not a whole .gz file.") from None
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None


def _file_dataset(path, compression):
    lines = tf.data.TextLineDataset(path, compression_type=compression)
    first = lines.take(1).map(
        lambda line: tf.strings.regex_replace(line, b"^" + BYTE_ORDER_MARK, b"")
    )
    return first.concatenate(lines.skip(1))
