"""Tables: the cells of TSV and CSV."""

import csv
import itertools
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kseq.data.files.blank_text import is_blank
from kseq.data.files.compressed_files import uncompressed_name
from kseq.data.files.data_error import DataError
from kseq.data.files.table_folders import is_text_folder, kind_of_folder
from kseq.data.files.table_form import form_of
from kseq.data.files.text_files import Line, matching_files, read_lines

_KINDS = {
    ".tsv": "tsv",
    ".csv": "csv",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_RETURN = "\ud800"  # in no text; the csv module ends a row at the real one
_LARGEST_CELL = 2**26  # characters of a CSV cell; a quote was not closed
_LARGEST_ROW = 2**26  # bytes of its first line
# Names of columns that are hardly ever sentences.
_HEADER = re.compile(
    r"source|target|src|tgt|trg|input|output|text|translation|sentence|label"
    r"|question|answer|id|en|de|fr|es|it|pt|nl|ru|zh|ja|ar|hi|tr|pl|cs|sv|fi|ko"
    r"|english|german|french|spanish|italian|portuguese|dutch|russian|chinese"
    r"|japanese|korean|arabic|hindi|turkish|polish|czech|swedish|finnish"
    r"|(english|german|french|spanish) words/sentences",
    re.IGNORECASE,
)


def kind_of(path: str | os.PathLike) -> str | None:
    """The kind of a table by its name, or of a folder by what is in it.

    Returns:
        "tsv", "csv", "json", "parquet", "arrow", or None for no table.
    """
    if os.path.isdir(path):
        return kind_of_folder(path)
    name = uncompressed_name(path)
    return _KINDS.get(os.path.splitext(name)[1].lower())


def rows_of_cells(path: str) -> Iterator[tuple[Line, list[bytes]]]:
    """The cells of each row, none for a blank one, and where the row starts.

    A CSV has the quotes of RFC 4180. In a TSV a quote is text, unless all
    quotes follow RFC 4180, see `form_of`.

    Raises:
        DataError: a quote of a CSV is wrong.
    """
    form = form_of(path, kind_of(path) or "tsv")
    lines = itertools.islice(read_lines(path), form.skipped, None)
    if form.has_quotes:
        return _quoted_rows(lines, form.delimiter)
    return ((line, _tsv_cells(line)) for line in lines)


def notes_on(
    pattern: str | os.PathLike, default: str | None = "tsv"
) -> list[str]:
    """Notes on tables that differ from what their names say.

    A file of any other name is of the kind `default`: "tsv", or None for no
    table.
    """
    if is_text_folder(pattern):
        return []
    notes = {}
    for path in matching_files(pattern):
        kind = kind_of(path) or default
        if kind in ("tsv", "csv") and (note := form_of(path, kind).note):
            notes.setdefault(note, []).append(path)
    return [
        f"{first}{f' and {len(more)} more' * bool(more)}: {note}"
        for note, (first, *more) in notes.items()
    ]


def _tsv_cells(line) -> list[bytes]:
    _refuse_large(line)
    text = line.text.removesuffix(b"\r")
    return [] if is_blank(text) else text.split(b"\t")


def _refuse_large(line):
    """Raises DataError for a row whose cells would fill the memory."""
    if len(line.text) > _LARGEST_ROW:
        raise broken(line, "a row of at most 64 MiB", beginning(line.text))


def _quoted_rows(lines, delimiter) -> Iterator[tuple[Line, list[bytes]]]:
    first = last = None  # lines of the row

    def texts():
        nonlocal first, last
        for last in lines:
            first = first or last
            _refuse_large(last)
            text = last.text.decode(errors="surrogateescape")
            content = text.rstrip("\r")
            yield content.replace("\r", _RETURN) + text[len(content) :] + "\n"

    csv.field_size_limit(_LARGEST_CELL)
    rows = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        first = None
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise broken(
                first or last,
                "quotes as in RFC 4180: around a whole cell, doubled inside",
                found=f"{beginning((first or last).text)} ({error})",
            ) from None
        row = [cell.replace(_RETURN, "\r") for cell in row]
        cells = [] if all(map(is_blank, row)) else row
        yield (
            first,
            [cell.encode(errors="surrogateescape") for cell in cells],
        )


def different_columns(
    columns: tuple[str, ...], whose: str, most: int = 2
) -> tuple[str, ...]:
    """Columns, names or numbers; `whose` is for the message.

    Raises:
        DataError: they are not two, or up to `most`, or two are equal.
    """
    columns = tuple(columns)
    is_right = all(columns) and len({*columns}) == len(columns)
    if not (is_right and 2 <= len(columns) <= most):
        numbers = "two" if most == 2 else f"two to {most}"
        raise DataError(
            f"columns takes {numbers} different names or numbers, {whose}. "
            f"Received: {columns!r}"
        )
    return columns


class Layout(NamedTuple):
    """Which cells of the rows of a table are read.

    Args:
        positions: of the cells.
        is_header: whether the first row has names.
        names: of all columns, for messages about a row of another width.
    """

    positions: Sequence[int]
    is_header: bool
    names: Sequence[str] = ()


def cells_of_rows(
    rows: Iterable[tuple[Line, list[bytes]]],
    layout_of: Callable[[Line, list[bytes]], Layout],
    counts: Counter | None = None,
) -> Iterator[tuple[Line, list[bytes]]]:
    """Some cells of each row that is not blank, and where the row starts.

    Rows are those of `rows_of_cells`; `blank` ones are counted.

    Raises:
        DataError: a row has more or fewer columns than the first one.
    """
    counts = Counter() if counts is None else counts
    layout, width, expected = None, 0, ""
    for line, cells in rows:
        if not cells:
            counts["blank"] += 1
            continue
        if layout is None:
            layout, width = layout_of(line, cells), len(cells)
            expected = ", ".join([f"{width} columns", *layout.names])
            if layout.is_header:
                continue
        check_width(line, cells, width, expected)
        yield line, [cells[place] for place in layout.positions]


def chosen_columns(
    rows: Iterable[tuple[Line, list[bytes]]],
    columns: tuple[str, ...],
    default: tuple[str, str],
    counts: Counter,
) -> Iterator[tuple[Line | str, ...]]:
    """Some cells of each row as strings, after where the row starts.

    Columns are names in the first row, or numbers from "1"; those of a table
    of two without a header are `default`. Rows that are `blank` or `invalid`,
    not UTF-8, are counted.

    Raises:
        DataError: a row does not have the columns.
    """

    def layout_of(line, cells):
        names = names_of(cells)
        if are_numbers(columns):
            numbers = [str(number) for number in range(1, len(cells) + 1)]
            return Layout(find_columns(line, cells, columns), False, numbers)
        if len(cells) == 2 and columns == default and set(columns) - set(names):
            return Layout((0, 1), False, columns)
        return Layout(find_columns(line, cells, columns), True, names)

    for line, cells in cells_of_rows(rows, layout_of, counts):
        yield line, *decoded(cells, counts)


def decoded(cells: list[bytes], counts: Counter) -> list[str]:
    """Cells as strings; a row that is not UTF-8 is counted as `invalid`."""
    texts = [cell.decode(errors="replace") for cell in cells]
    # A cell may contain U+FFFD itself.
    if [text.encode() for text in texts] != cells:
        counts["invalid"] += 1
    return texts


def are_numbers(columns) -> bool:
    """Whether columns are 1-based numbers, not names."""
    return bool(columns) and all(
        re.fullmatch("[0-9]{1,9}", column) for column in columns
    )


def find_columns(
    line: Line, cells: list[bytes], columns: tuple[str, ...]
) -> tuple[int, ...]:
    """The positions of columns, by name or number, in a first row.

    Raises:
        DataError: the row does not have them.
    """
    if are_numbers(columns):
        positions = [int(column) - 1 for column in columns]
        if all(0 <= position < len(cells) for position in positions):
            return tuple(positions)
    else:
        names = names_of(cells)
        if all(column in names for column in columns):
            return tuple(place_of(line, names, column) for column in columns)
    raise broken(
        line,
        f"the columns {' and '.join(f'{each!r:.80}' for each in columns)}",
        found=f"{_listed(cells)}. Choose "
        f"{'three' if len(columns) > 2 else 'two'} of them with --columns",
    )


def place_of(line: Line, names: list[str], column: str) -> int:
    """The position of a column; DataError if two columns have its name."""
    if (count := names.count(column)) > 1:
        raise broken(
            line,
            f"one column {column!r}",
            found=f"{count} of this name. Rename all but one",
        )
    return names.index(column)


def names_of(cells) -> list[str]:
    """Cells of a first row as names of columns."""
    return [cell.decode(errors="replace").strip() for cell in cells]


def ask_for_columns(line: Line, cells, wanted: str) -> DataError:
    """The error for a table whose columns must be chosen."""
    example = "1 2"
    names = names_of(cells)
    if is_header(cells[:2]):
        example = " ".join(map(shlex.quote, names[:2]))
    return broken(
        line,
        wanted,
        found=f"{_listed(cells)}. Choose two of them, "
        f"for example --columns {example}",
    )


def is_header(cells) -> bool:
    """Whether a first row looks like a header."""
    return all(_HEADER.fullmatch(name) for name in names_of(cells))


def check_width(line: Line, cells, width: int, expected: str | None = None):
    """Raises DataError unless a row has exactly the expected columns."""
    if cells and len(cells) != width:
        raise broken(
            line,
            expected or f"{width} columns",
            found=f"{len(cells)} in {beginning(line.text)}",
        )


def _listed(cells) -> str:
    """Columns and their numbers, without showing whole texts."""
    count = len(cells)
    shown = [
        f"{number} {beginning(cell, 24)}"
        for number, cell in enumerate(cells[:8], start=1)
    ]
    more = ["..."] * (count > 8)
    plural = "s" * (count != 1)
    return f"{count} column{plural}: {', '.join(shown + more)}"


def broken(line: Line, expected: str, found: str) -> DataError:
    """The error for a line."""
    return DataError(f"{line}: expected {expected}; found {found}")


def beginning(value, length: int = 60) -> str:
    """A value as it is shown in a message."""
    if isinstance(value, bytes):
        value = value[: 4 * length].decode(errors="replace")
    shown = repr(value)
    if len(shown) <= length:
        return shown
    if isinstance(value, str):
        return f"{value[:length]!r}..."
    return f"{shown[:length]}..."
