"""Tables of pictures and their captions."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kseq.data.data_error import DataError
from kseq.data.tables import (
    ask_for_columns,
    beginning,
    broken,
    check_width,
    find_columns,
    json_object,
    kind_of,
    names_of,
    rows_of_cells,
    without_surrogates,
)
from kseq.data.text_files import LONGEST_LINE, Line, matching_files, read_lines

_NAMES = ("image", "image_name", "name", "file", "file_name", "filename")
_CAPTIONS = ("caption", "comment", "text", "sentence", "raw")
_NUMBER = re.compile(r"#\d+$")  # image.jpg#0
_MARKS = re.compile(r"[^\w\s]|_")


def read_caption_files(
    pattern: str | os.PathLike,
    columns: Sequence[str] = (),
    plain: bool = False,
) -> tuple[dict[str, list[str]], dict[str, Line], Counter]:
    r"""The captions of each picture of a table.

    A table is a TSV, a CSV or JSON lines. Without `columns` it has names in
    its first row, or a picture in its first column and a caption in its last,
    with a number between them or nothing. A `#0` after the name of a picture
    is left out.

    Args:
        pattern: path; a pattern names several files.
        columns: of picture and caption, by name or as numbers from "1".
        plain: whether captions become lower case without punctuation.

    Returns:
        {name: captions}, {name: its first line}, and how many rows are
        `blank` or `too_long`, which are left out.

    Raises:
        DataError: a table is broken, or has no caption.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("a.jpg\t0\tA dog .\na.jpg\t1\tHi")
    >>> read_caption_files("a.tsv", plain=True)[0]
    {'a.jpg': ['a dog', 'hi']}
    """
    captions, lines, counts = {}, {}, Counter()
    for line, name, caption in caption_rows(pattern, columns):
        name = _NUMBER.sub("", _text(name))
        if not name:
            raise broken(line, "the name of a picture", found="none")
        caption = _text(caption)
        if plain:
            caption = " ".join(_MARKS.sub(" ", caption.lower()).split())
        if not caption or len(caption.encode()) > LONGEST_LINE:
            counts["too_long" if caption else "blank"] += 1
            continue
        captions.setdefault(name, []).append(caption)
        lines.setdefault(name, line)
    if not captions:
        raise DataError(f"{pattern} has no caption.")
    return captions, lines, counts


def _text(cell):
    return " ".join(cell.decode("utf-8", "replace").split())


def caption_rows(pattern, columns) -> Iterator[tuple[Line, bytes, bytes]]:
    """The rows of all files that a pattern matches: (line, name, caption).

    Raises:
        DataError: a table is broken or does not have the columns.
    """
    for path in matching_files(pattern):
        yield from _rows(path, tuple(columns))


def _rows(path, columns):
    kind = kind_of(path) or "tsv"
    lines = read_lines(path)
    if kind == "json":
        return (_of_json(line, columns) for line in lines if line.text.strip())
    return _of_cells(rows_of_cells(lines, kind), columns)


def _of_json(line, columns):
    record = json_object(line)
    if not columns:
        columns = [
            next((key for key in known if key in record), known[0])
            for known in (_NAMES, _CAPTIONS)
        ]
    values = [record.get(column) for column in columns]
    if not all(isinstance(value, str) for value in values):
        keys = ", ".join(map(beginning, list(record)[:8])) or "no keys"
        raise broken(
            line, f"strings at {columns[0]!r} and {columns[1]!r}", found=keys
        )
    texts = [without_surrogates(value).encode() for value in values]
    return line, *texts


def _of_cells(rows, columns):
    places, width = None, 0
    for line, cells in rows:
        if not cells:
            continue
        if places is None:
            width = len(cells)
            places, is_header = _places(line, cells, columns)
            if is_header:
                continue
        check_width(line, cells, width)
        yield line, *(cells[place] for place in places)


def _places(line, cells, columns):
    """Where name and caption are in a first row; whether it is a header."""
    if columns:
        places = find_columns(line, cells, columns)
        return places, not all(column.isdigit() for column in columns)
    header = [name.lower() for name in names_of(cells)]
    found = [
        next((header.index(name) for name in known if name in header), None)
        for known in (_NAMES, _CAPTIONS)
    ]
    if None not in found:
        return found, True
    is_numbered = len(cells) == 3 and cells[1].strip().isdigit()
    if len(cells) == 2 or is_numbered:
        return (0, len(cells) - 1), False
    raise ask_for_columns(
        line, cells, "the columns of a picture and its caption"
    )
