"""Lines of files, to check them.

A file is UTF-8, plain or compressed, with or without a byte order mark, and
split at newlines only.
"""

import functools
import glob
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from kseq.data.files.compressed_files import open_uncompressed, unreadable
from kseq.data.files.data_error import DataError
from kseq.data.files.table_folders import (
    files_of_folder,
    kind_of_folder,
)
from kseq.terminal import escaped_line

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
_OTHER_FORMATS = {  # by the first bytes of a file
    b"\x1f\x8b\x08": ".gz",
    b"BZh91AY&SY": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\3\4": ".zip or .npz",
    b"PAR1": ".parquet",
    b"ARROW1\0\0": ".arrow",
    b"%PDF-": ".pdf",
}
LONGEST_LINE = 65_536  # bytes; a longer line is not a sentence
_LARGEST_LINE = 2**30  # bytes in memory, of which a compressed file has few

_READ_ONCE = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class Line(NamedTuple):
    """A line, or a cell of it, and its position."""

    text: bytes
    path: str
    number: int
    is_joined: bool = False  # with a space for each newline or tab inside

    def __str__(self):
        return f"{escaped_line(self.path)}:{self.number}"

    @property
    def place(self) -> str:
        """Where it is, for messages that have the path."""
        return f"line {self.number}"


def read_lines(pattern: str | os.PathLike) -> Iterator[Line]:
    """The lines of a file, or of all files that a pattern matches."""
    for path in matching_files(pattern):
        line = None
        for line in _read_file(path):
            yield line
        if line is None:
            raise DataError(f"{path} is empty.")


def matching_files(pattern: str | os.PathLike) -> list[str]:
    """The path itself, or those that it matches as a pattern, sorted.

    An existing path is never a pattern: `data [1]/*.gz` are the files in the
    folder `data [1]`, if there is one. Of a folder that is a table they are
    its files.

    Raises:
        DataError: there is no such file, or one cannot be read, or only once.
    """
    pattern = os.fspath(pattern)
    if not pattern:
        raise DataError(
            "Expected the path of a file; found an empty one. Is a shell "
            "variable unset?"
        )
    try:
        is_there = os.path.exists(pattern)
        paths = [pattern] if is_there else sorted(_matches(pattern))
    except ValueError:  # NUL
        paths = []
    if not paths:
        hint = ""
        if pattern == "-":
            hint = (
                " Standard input can be read only once; write it to a file "
                "first."
            )
        raise DataError(f"There is no file {pattern!r:.500}.{hint}")
    files = []
    for path in paths:
        kind = kind_of_folder(path)
        files += files_of_folder(path, kind) if kind else [path]
    for path in files:
        check_file(path)
    return files


def _matches(pattern):
    """The matches of a pattern in the deepest of its folders that exists."""
    folder = os.path.dirname(pattern)
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    rest = pattern[len(folder) :]
    return glob.glob(glob.escape(folder) + rest)


def check_file(path: str):
    """Raises DataError for what is not a file; a pipe would block."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise unreadable(path, error) from None
    for is_kind, kind in _READ_ONCE:
        if is_kind(mode):
            raise DataError(
                f"{path} is {kind}, which can be read only once; write it to "
                "a file first."
            )
    if stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; give the path of a file.")
    if not os.access(path, os.R_OK):
        raise DataError(f"Cannot read {path}: Permission denied.")


def _read_file(path) -> Iterator[Line]:
    with open_uncompressed(path) as file:
        lines = iter(functools.partial(file.readline, _LARGEST_LINE), b"")
        for number, text in enumerate(lines, start=1):
            if len(text) == _LARGEST_LINE:
                raise DataError(
                    f"{path}, line {number}: expected a line of at most 1 GiB."
                )
            if number == 1:
                _refuse_other_format(path, text)
                refuse_utf_16(path, text)
                _refuse_carriage_returns(path, text)
                text = text.removeprefix(BYTE_ORDER_MARK)
            yield Line(text.removesuffix(b"\n"), path, number)


def _refuse_other_format(path, text):
    """Rejects a file that is no text, whose name does not say so."""
    for start, kind in _OTHER_FORMATS.items():
        if text.startswith(start):
            raise DataError(
                f"{path} is not text: it begins as a {kind} file does. Rename "
                "or convert it."
            )


def refuse_utf_16(name, text):
    """Rejects UTF-16 and UTF-32, which would be read as text with NULs.

    `name` is what is read, for the message, and `text` its first line, bytes.

    Raises:
        DataError: it is UTF-16 or UTF-32.
    """
    has_mark = text.startswith(_UTF_16_MARKS)
    if has_mark or (len(text) >= 8 and 3 * text.count(0) > len(text)):
        raise DataError(
            f"{name} is UTF-16 or UTF-32, or not text; expected UTF-8. Convert "
            "it: iconv -f UTF-16 -t UTF-8 FILE > NEW-FILE"
        )


def _refuse_carriage_returns(path, text):
    """Rejects a file whose lines end in carriage returns alone.

    Its first line is then all of it.
    """
    if not text.endswith(b"\n") and b"\r" in text.rstrip(b"\r"):
        raise DataError(
            f"{path}: the lines end in carriage returns alone; expected "
            "newlines. Convert it: tr '\\r' '\\n' < FILE > NEW-FILE"
        )
