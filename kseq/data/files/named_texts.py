"""Tables of names, of pictures or recordings, and their texts."""

import functools
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kseq.data.files.blank_text import is_blank
from kseq.data.files.data_error import DataError
from kseq.data.files.reading_problems import invalid_lines
from kseq.data.files.records import (
    as_text,
    has_keys,
    has_records,
    listed_keys,
    read_records,
    value_at,
)
from kseq.data.files.tables import (
    Layout,
    are_numbers,
    ask_for_columns,
    beginning,
    broken,
    cells_of_rows,
    decoded,
    different_columns,
    find_columns,
    names_of,
    notes_on,
    place_of,
    rows_of_cells,
)
from kseq.data.files.tar_members import TarMember, is_tar, tar_rows
from kseq.data.files.text_files import LONGEST_LINE, Line, matching_files


class Columns(NamedTuple):
    """The two columns of a table.

    Args:
        names: what the column of names is usually called, in lower case.
        texts: the same for the column of texts.
        name: what a name is the name of, for messages.
        text: what a text is called, for messages.
        extensions: of the files that have names, in lower case.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    name: str
    text: str
    extensions: tuple[str, ...]


CAPTIONS = Columns(
    ("image", "image_name", "name", "file", "file_name", "filename"),
    ("caption", "comment", "text", "sentence", "raw"),
    "picture",
    "caption",
    ("jpg", "jpeg", "png"),
)
TRANSCRIPTS = Columns(
    (
        *("audio", "path", "wav", "file", "file_name", "filename"),
        *("audio_filepath", "id", "name"),
    ),
    ("transcript", "transcription", "text", "sentence", "words"),
    "recording",
    "transcript",
    (
        *("wav", "flac", "mp3", "ogg", "oga", "opus", "aif", "aiff", "aifc"),
        *("au", "caf", "rf64", "sph", "w64"),
    ),
)
_NUMBER = re.compile(r"#\d+$")  # image.jpg#0
_MARKS = re.compile(r"[^\w\s]|_")


def read_named_texts(
    pattern: str | os.PathLike,
    columns: Sequence[str] = (),
    plain: bool = False,
    known: Columns = CAPTIONS,
) -> tuple[dict[str, list[str]], dict[str, Line], Counter]:
    r"""The texts of each name of a table.

    A table is a TSV, a CSV or JSON lines. Without `columns` its first row has
    the names of columns, or a name is in the first column and a text in the
    last, possibly with a number between them. In JSON a text may be a number,
    such as a label, or a list of several. A `#0` after the name of a picture is
    removed. A tar archive has both, see `tar_rows`.

    Args:
        pattern: path; a pattern names several files.
        columns: of names and texts, by name or as numbers from "1".
        plain: whether texts become lower case without punctuation.
        known: what the columns are usually called.

    Returns:
        {name: texts}, {name: its first line, or its `TarMember`}, and how many
        rows are `blank` or `too_long`, `without_text` or `without_media`, which
        are left out, and how many texts are `invalid` UTF-8.

    Raises:
        DataError: a table is broken, or has no text.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.tsv").write_text("a.jpg\t0\tA dog .\na.jpg\t1\tHi")
    >>> read_named_texts("a.tsv", plain=True)[0]
    {'a.jpg': ['a dog', 'hi']}
    """
    texts, lines, counts = {}, {}, Counter()
    for line, name, text in named_rows(pattern, columns, known, counts):
        name = os.fsdecode(name).strip()
        if known is CAPTIONS:
            name = _NUMBER.sub("", name)
        if not name:
            raise broken(line, f"the name of a {known.name}", found="none")
        text = " ".join(decoded([text], counts)[0].split())
        if plain:
            text = " ".join(_MARKS.sub(" ", text.lower()).split())
        if is_blank(text) or len(text.encode()) > LONGEST_LINE:
            counts["blank" if is_blank(text) else "too_long"] += 1
            continue
        texts.setdefault(name, []).append(text)
        first = lines.setdefault(name, line)
        if isinstance(line, TarMember) and line.path != first.path:
            raise DataError(f"{line.place} is a copy of {first.place}.")
    if not texts:
        raise DataError(f"{pattern} contains no {known.text}.")
    return texts, lines, counts


def lines_of_names(tables) -> dict[str, Line | TarMember]:
    """The different names in all tables, each with a line that has it."""
    return {name: line for each in tables for name, line in each.lines.items()}


def refuse_missing(lines, numbers: dict[str, int], kind: str):
    """Raises DataError for a name of `lines` that has no number of features."""
    for name, line in lines.items():
        if name not in numbers:
            raise DataError(
                f"{line}: expected the name of a {kind} that has features, "
                f"such as {next(iter(numbers))!r:.100}; found {name!r:.100}."
            )


def left_out_texts(path, counts, known: Columns = CAPTIONS) -> list[str]:
    """Lines about the rows of a table that `read_named_texts` counts."""
    notes = [] if any(map(is_tar, matching_files(path))) else notes_on(path)
    reasons = (
        ("blank", known.text, "are blank"),
        ("too_long", known.text, "are too long"),
        ("without_text", known.name, f"have no {known.text}"),
        ("without_media", known.text, f"have no {known.name}"),
    )
    notes += [
        f"{path}: {counts[reason]} {what}s are left out: they {problem}."
        for reason, what, problem in reasons
        if counts[reason]
    ]
    return notes + invalid_lines(path, counts["invalid"])


def named_rows(
    pattern, columns, known, counts=None
) -> Iterator[tuple[Line | TarMember, bytes, bytes]]:
    """The rows of all files that a pattern matches: (line, name, text).

    Raises:
        DataError: a table is broken or does not have the columns.
    """
    if columns:
        columns = different_columns(
            columns, f"the {known.name}'s and the {known.text}'s"
        )
    for path in matching_files(pattern):
        yield from _rows(path, tuple(columns), known, counts)


def _rows(path, columns, known, counts):
    if is_tar(path):
        return tar_rows(path, known, counts)
    if not has_records(path):
        layout_of = functools.partial(_layout, columns=columns, known=known)
        rows = cells_of_rows(rows_of_cells(path), layout_of)
        return ((line, *cells) for line, cells in rows)
    records = read_records(path, columns or known.names + known.texts, counts)
    return itertools.chain.from_iterable(
        _of_record(line, record, columns, known)
        for line, record in records
        if record is not None
    )


def _of_record(line, record, columns, known):
    """The rows of an object: one, or one for each text of a list."""
    if not columns:
        columns = [
            next((key for key in keys if key in record), keys[0])
            for keys in (known.names, known.texts)
        ]
    if not has_keys(record, columns):
        raise broken(
            line,
            f"the keys {columns[0]!r} and {columns[1]!r}",
            found=listed_keys(record),
        )
    name, text = (value_at(record, column) for column in columns)
    texts = text if isinstance(text, list) else [text]
    name = _bytes(line, columns[0], name)
    return [(line, name, _bytes(line, columns[1], each)) for each in texts]


def _bytes(line, column, value) -> bytes:
    """A string, or a number such as a label."""
    text = as_text(value)
    if text is None:
        raise broken(line, f"a string at {column!r}", found=beginning(value))
    return text.encode()


def _layout(line, cells, columns, known) -> Layout:
    if columns:
        positions = find_columns(line, cells, columns)
        return Layout(positions, not are_numbers(columns))
    header = [name.lower() for name in names_of(cells)]
    found = [
        next(
            (place_of(line, header, name) for name in names if name in header),
            None,
        )
        for names in (known.names, known.texts)
    ]
    if None not in found:
        return Layout(found, True)
    is_numbered = len(cells) == 3 and cells[1].strip().isdigit()
    if len(cells) == 2 or is_numbered:
        return Layout((0, len(cells) - 1), False)
    raise ask_for_columns(
        line, cells, f"the columns of a {known.name} and its {known.text}"
    )
