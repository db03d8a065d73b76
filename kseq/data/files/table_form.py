"""The format of the cells of a table, detected from its rows."""

import csv
import functools
import itertools
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from kseq.data.files.text_files import read_lines

_LOOKED_AT = 100  # rows, for the delimiter
_LARGEST_START = 2**22  # bytes of them
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_LONGEST_ROW = 2**20  # bytes of a row with line ends in a cell
_CELL = re.compile(rb'"(?:[^"]|"")*+"|[^"\t]*+')
_DECLARATION = re.compile(r'"?sep=([,;\t|])"?[,;\t|]*$', re.IGNORECASE)
_NUMBER = re.compile(rb"[-+]?[\d.]*(?:[eE][-+]?\d+)?")


class TableForm(NamedTuple):
    """How the cells of a table are written.

    Args:
        delimiter: str, between cells.
        has_quotes: bool, whether cells can be quoted as in RFC 4180.
        note: str, how the format differs from what the name says, or "".
        skipped: int, lines before the first row.
    """

    delimiter: str = "\t"
    has_quotes: bool = False
    note: str = ""
    skipped: int = 0


def form_of(path: str, kind: str | None) -> TableForm:
    """Detects the format of a TSV or CSV from its rows.

    The cells of a CSV are separated by commas, or by a different character if
    that gives columns and commas do not, or by that of a first line `sep=;`,
    which is for spreadsheets and no row. In a TSV quotes are text, unless all
    of them follow RFC 4180: around a whole cell, doubled inside, and around
    each cell that needs them.

    Raises:
        DataError: the file cannot be read.
    """
    found = os.stat(path)
    return _form_of(path, kind, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=1024)
def _form_of(path, kind, *_):
    if kind == "csv":
        return _form_of_csv(path)
    if _is_quoted(read_lines(path)):
        return TableForm(
            has_quotes=True,
            note="cells are in quotes, which are doubled inside, as some "
            "programs write a TSV; the quotes are removed.",
        )
    return TableForm()


def _form_of_csv(path):
    lines, size = [], 0
    for line in itertools.islice(read_lines(path), _LOOKED_AT):
        lines.append(line.text[:_LARGEST_START])
        size += len(line.text)
        if size > _LARGEST_START:
            break
    # A carriage return inside of a line would end the rows.
    texts = [
        line.replace(b"\r", b"").decode(errors="replace") for line in lines
    ]
    declared = _DECLARATION.match(texts[0])
    if declared:
        best = declared[1]
    else:
        best = max(_DELIMITERS, key=lambda sign: _agreement(texts, sign))
    note = f"columns are separated by {_DELIMITERS[best]}, not by commas."
    note *= best != ","
    return TableForm(best, True, note, skipped=1 if declared else 0)


def _agreement(texts, delimiter) -> float:
    """The fraction of rows with as many columns as the first one."""
    widths = []
    try:
        for row in csv.reader(
            (f"{text}\n" for text in texts), delimiter=delimiter
        ):
            if any(map(str.strip, row)):
                widths.append(len(row))
    except csv.Error:
        pass
    if len(widths) < 2 or widths[0] < 2:
        return 0.0
    return widths.count(widths[0]) / len(widths)


def _is_quoted(lines: Iterable) -> bool:
    """Whether all quotes of a TSV follow RFC 4180."""
    width, rows, has_proof, all_are_quoted = None, 0, False, True
    lines = (line.text for line in lines)
    for text in lines:
        if b'"' not in text:  # almost all lines: this has to be quick
            if all_are_quoted and text.strip():
                width, all_are_quoted = text.count(b"\t") + 1, False
            continue
        rows += 1
        parts = _lines_of_row(text.removesuffix(b"\r"), lines)
        cells = parts and _cells(b"\n".join(parts))
        if not cells or len(cells) != (width or len(cells)):
            return False
        width = len(cells)
        quoted = [cell for cell in cells if cell.startswith(b'"')]
        # If each line is a row, the quotes may be a quotation across rows.
        are_rows = all(part.count(b"\t") + 1 == width for part in parts)
        has_proof |= any(
            b'""' in cell[1:-1]
            or ((b"\t" in cell or b"\n" in cell) and not are_rows)
            for cell in quoted
        )
        all_are_quoted &= all(
            cell.startswith(b'"') or _NUMBER.fullmatch(cell) for cell in cells
        )
    # Or all cells but numbers are in quotes.
    return has_proof or (all_are_quoted and rows > 2)


def _lines_of_row(text, lines):
    """A line and the further lines of its row; None if a quote stays open."""
    parts, size = [text], len(text)
    is_open = text.count(b'"') % 2
    while is_open:
        text = next(lines, None)
        if text is None or size > _LONGEST_ROW:
            return None
        parts.append(text.removesuffix(b"\r"))
        size += len(text)
        is_open ^= text.count(b'"') % 2
    return parts


def _cells(text):
    """The cells of a row; None if a quote is neither around one nor doubled."""
    cells, place = [], 0
    while True:
        found = _CELL.match(text, place)
        cells.append(found[0])
        place = found.end()
        if place == len(text):
            return cells
        if text[place : place + 1] != b"\t":
            return None
        place += 1
