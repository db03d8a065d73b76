"""Documents of running text from files."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kseq.data.files.blank_text import is_blank
from kseq.data.files.corpora import log_problems
from kseq.data.files.data_error import DataError
from kseq.data.files.reading_problems import reading_problems
from kseq.data.files.records import (
    has_keys,
    has_records,
    listed_keys,
    read_records,
    value_at,
    without_surrogates,
)
from kseq.data.files.table_folders import is_text_folder
from kseq.data.files.tables import (
    Layout,
    beginning,
    broken,
    cells_of_rows,
    decoded,
    kind_of,
    names_of,
    notes_on,
    place_of,
    rows_of_cells,
)
from kseq.data.files.text_files import matching_files, read_lines
from kseq.data.files.text_folders import texts_in_folder
from kseq.data.files.url_files import is_url
from kseq.terminal import escaped_line

DEFAULT_COLUMN = "text"
_CHUNK = 2**20  # bytes of a large document that are read together


def read_texts(
    path: str | os.PathLike, column: str = DEFAULT_COLUMN
) -> list[str]:
    """The documents of files, see `read_text_corpus`, without blank ones.

    Invalid UTF-8 becomes U+FFFD, and carriage returns are left out.

    Raises:
        DataError: a file cannot be read, is broken or has no text; or there is
            a column, but no table.
    """
    check_column(column, path)
    texts, problems = texts_and_problems(path, column)
    log_problems(problems)
    return texts


def check_column(column: str, *paths: str | os.PathLike | None):
    """DataError for a column other than the default, if there is no table.

    Args:
        column: name.
        *paths: of the files of all splits; None for one without files.
    """
    if column != DEFAULT_COLUMN and not any(map(_has_table, paths)):
        raise DataError(
            f"{escaped_line(paths[0])} is plain text, which has no columns: "
            f"leave out the column {escaped_line(column)}."
        )


def _has_table(path):
    if path is None or is_text_folder(path):
        return False
    # What a URL names is known after it is copied.
    return is_url(path) or any(map(kind_of, matching_files(path)))


def texts_and_problems(
    path: str | os.PathLike, column: str
) -> tuple[list[str], list[str]]:
    """The same, and what is unusual about the files, see `text_problems`."""
    counts = Counter()
    documents = list(documents_of(chunks_of(path, column, counts)))
    texts = [text for text in documents if not is_blank(text)]
    if not texts:
        raise DataError(f"{path} contains no text.")
    counts["documents"] += len(texts)
    counts["blank"] += len(documents) - len(texts)
    return texts, text_problems(path, counts)


def text_problems(path: str | os.PathLike, counts: Counter) -> list[str]:
    """What is unusual about files, one line per problem.

    Args:
        path: of the files.
        counts: of `documents`, and of what is `blank` or `invalid` UTF-8.
    """
    kept, left_out = counts["documents"], {"blank": counts["blank"]}
    return notes_on(path, default=None) + reading_problems(
        path, (kept, "documents"), left_out, counts["invalid"]
    )


def texts_of(path: str | os.PathLike, column: str = "text") -> Iterator[str]:
    """The documents of a file, see `read_texts`, including blank ones."""
    return documents_of(chunks_of(path, column, Counter()))


class Chunk(NamedTuple):
    """Whole lines of a document.

    Args:
        text: the lines.
        begins: whether the first of them is that of the document.
        ends: whether the last of them is.
    """

    text: str
    begins: bool = True
    ends: bool = True


def documents_of(chunks: Iterable[Chunk]) -> Iterator[str]:
    """The documents of which chunks are the parts."""
    texts = []
    for chunk in chunks:
        texts.append(chunk.text)
        if chunk.ends:
            yield "".join(texts)
            texts = []


def chunks_of(
    path: str | os.PathLike, column: str, counts: Counter
) -> Iterator[Chunk]:
    """The documents of a file, see `texts_of`; large files in chunks.

    Counts rows and files that are `blank`, and what is `invalid` UTF-8.
    """
    if is_text_folder(path):
        for _, text in texts_in_folder(path, counts):
            yield Chunk(text + "\n")
        return
    for name in matching_files(path):
        if has_records(name):
            yield from map(Chunk, _of_records(name, column, counts))
        elif kind_of(name):
            yield from map(Chunk, _of_cells(name, column, counts))
        else:
            yield from _of_lines(name, counts)


def _of_lines(path, counts):
    """A file that is one document, without the last one of two line breaks."""
    lines, size, begins, last = [], 0, True, b""
    for number, line in enumerate(read_lines(path)):
        if number:
            lines.append(last)
            size += len(last)
        if size >= _CHUNK:
            yield Chunk(_joined(lines, counts), begins, False)
            lines, size, begins = [], 0, False
        last = line.text.replace(b"\r", b"")
    if last or (begins and not lines):
        lines.append(last)
    yield Chunk(_joined(lines, counts), begins)


def _joined(lines, counts):
    text = b"".join([b"%b\n" % line for line in lines])
    try:
        return text.decode()
    except UnicodeDecodeError:
        return "".join(f"{decoded([line], counts)[0]}\n" for line in lines)


def _of_records(path, column, counts):
    for line, record in read_records(path, [column], counts):
        if record is None:
            counts["blank"] += 1
            continue
        if not has_keys(record, [column]):
            raise broken(
                line, f"a string at {column!r}", found=listed_keys(record)
            )
        text = value_at(record, column)
        if not isinstance(text, str):
            raise broken(line, f"a string at {column!r}", found=beginning(text))
        yield without_surrogates(text).replace("\r", "")


def _of_cells(path, column, counts):
    def layout_of(line, cells):
        names = names_of(cells)
        if column not in names:
            raise broken(
                line, f"a column named {column!r}", found=beginning(line.text)
            )
        return Layout([place_of(line, names, column)], True)

    for _, cells in cells_of_rows(rows_of_cells(path), layout_of, counts):
        yield decoded(cells, counts)[0].replace("\r", "")
