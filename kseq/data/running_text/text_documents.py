"""Documents of running text from files."""

import os
from collections import Counter
from collections.abc import Iterator

from kseq.data.files.blank_text import is_blank
from kseq.data.files.data_error import DataError
from kseq.data.files.records import (
    has_keys,
    has_records,
    listed_keys,
    read_records,
    value_at,
    without_surrogates,
)
from kseq.data.files.tables import (
    beginning,
    broken,
    check_width,
    kind_of,
    names_of,
    place_of,
    rows_of_cells,
)
from kseq.data.files.text_files import matching_files
from kseq.data.files.text_folders import (
    is_text_folder,
    texts_in_folder,
    whole_text,
)


def read_texts(path: str | os.PathLike, column: str = "text") -> list[str]:
    """The documents of files, see `read_text_corpus`, without blank ones.

    Invalid UTF-8 becomes U+FFFD, and carriage returns are left out.

    Raises:
        DataError: a file cannot be read, is broken or has no text.
    """
    documents = [t for t in texts_of(path, column) if not is_blank(t)]
    if not documents:
        raise DataError(f"{path} contains no text.")
    return documents


def texts_of(path: str | os.PathLike, column: str = "text") -> Iterator[str]:
    """The documents of a file, see `read_texts`, including blank ones."""
    if is_text_folder(path):
        for _, text in texts_in_folder(path, Counter()):
            yield text + "\n"
        return
    for name in matching_files(path):
        if has_records(name):
            yield from _of_records(name, column)
        else:
            read = _of_cells if kind_of(name) else _whole_file
            yield from read(name, column)


def _whole_file(path, column):
    yield whole_text(path).decode(errors="replace") + "\n"


def _of_records(path, column):
    for line, record in read_records(path, [column]):
        if record is None:
            continue
        if not has_keys(record, [column]):
            raise broken(
                line, f"a string at {column!r}", found=listed_keys(record)
            )
        text = value_at(record, column)
        if not isinstance(text, str):
            raise broken(line, f"a string at {column!r}", found=beginning(text))
        yield without_surrogates(text).replace("\r", "")


def _of_cells(path, column):
    place = width = None
    for line, cells in rows_of_cells(path):
        if not cells:
            continue
        if place is None:
            names = names_of(cells)
            if column not in names:
                raise broken(
                    line,
                    f"a column named {column!r}",
                    found=beginning(line.text),
                )
            place, width = place_of(line, names, column), len(cells)
            continue
        check_width(line, cells, width)
        yield cells[place].decode(errors="replace").replace("\r", "")
