"""Labelled documents: long texts and their labels."""

import os
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kseq.data.files.blank_text import is_blank
from kseq.data.files.corpora import log_problems
from kseq.data.files.data_error import DataError
from kseq.data.files.reading_problems import reading_problems
from kseq.data.files.records import (
    as_text,
    has_keys,
    has_records,
    read_records,
    shown_record,
    value_at,
    without_surrogates,
)
from kseq.data.files.table_folders import is_text_folder
from kseq.data.files.tables import (
    beginning,
    broken,
    chosen_columns,
    different_columns,
    notes_on,
    rows_of_cells,
)
from kseq.data.files.text_files import Line, matching_files
from kseq.data.files.text_folders import texts_in_folder
from kseq.files.json_files import are_strings
from kseq.terminal import escaped_line, progress

DEFAULT_COLUMNS = ("label", "text")
LONGEST_DOCUMENT = 1_000_000  # bytes; longer ones are left out
LINE_END = r"(?i)<br ?/?>|\r\n?"
_LONGEST_LABEL = 100  # characters
_SENTENCES = "sentences"


class Documents(NamedTuple):
    """Texts and their labels, all in memory.

    Args:
        texts: one string a document.
        labels: the same number.
        in_lines: whether each line of a text is a sentence.
        evidence: only of the built-in corpus: for each document the index of
            the decisive sentence, and its decisive word.
    """

    texts: list[str]
    labels: list[str]
    in_lines: bool = False
    evidence: list[tuple[int, str]] | None = None

    @classmethod
    def of(cls, rows: list[tuple[str, str]], in_lines: bool) -> "Documents":
        """The documents of rows, a label and a text each."""
        texts, labels = [text for _, text in rows], [name for name, _ in rows]
        return cls(texts, labels, in_lines)

    @property
    def inputs(self) -> list[str]:
        """What a classifier is given: the texts."""
        return self.texts

    @property
    def names(self) -> list[str]:
        """What is shown of the inputs: the texts."""
        return self.texts

    def lines(self) -> Iterator[str]:
        """The lines of all texts, to train a tokenizer on."""
        for text in self.texts:
            yield from lines_of_document(text)


def lines_of_document(text: str) -> list[str]:
    """The lines of a text, to train a tokenizer on."""
    return re.sub(LINE_END, "\n", text).split("\n")


def document_problems(path, counts: Counter) -> list[str]:
    """What is wrong with a file, one line per problem."""
    left_out = {
        "blank": counts["blank"],
        f"over {LONGEST_DOCUMENT} bytes": counts["too_long"],
    }
    kept = counts["documents"], "documents"
    problems = reading_problems(path, kept, left_out, counts["invalid"])
    return notes_on(path) + problems


class _Row(NamedTuple):
    line: Line
    label: str
    text: str
    in_lines: bool


def read_documents(
    path: str | os.PathLike, columns: tuple[str, ...] = DEFAULT_COLUMNS
) -> Documents:
    r"""Reads labelled documents from JSON lines or from a table.

    A .jsonl or .json file holds one JSON object per line, or an array of
    them, and a .parquet file a row, with a label and either a text or
    "sentences", a list of strings. A .csv file is a table with the quotes of
    RFC 4180, any other file is a table with tabs, in which quotes are text; the
    first row names the columns, or there are two columns, label and text. All
    of them but Parquet may be compressed. A folder has a folder for each label,
    in which each .txt file is a document.

    All documents are held in memory. Blank ones and those over a million
    bytes are left out, and invalid UTF-8 becomes U+FFFD; both are counted and
    logged.

    Args:
        path: a file, a folder, or a pattern that matches several files, read
            in the order of their names.
        columns: the label's and the text's keys, or names in the first row
            of a table, or numbers of columns, from "1", of a table without
            names. Those of two texts read pairs, such as a premise and a
            hypothesis: each text is a line of the document. A label is a
            string of at most 100 characters, a number, 4 and 4.0 being the
            same, or true or false; white space around it is left out.

    Returns:
        Documents, in the order of the file. Sentences of a list are lines of
        their text; blank ones are left out, and so is a pair with a blank
        text.

    Raises:
        DataError: a file cannot be read, a line is broken or without a
            label, some lines have a text and others sentences, or no
            document is left.

    Example:
    >>> import pathlib
    >>> file = pathlib.Path("reviews.tsv")
    >>> _ = file.write_text("stars\tid\ttext\n5\ta1\tSo good.\n1\ta2\tNo!\n")
    >>> read_documents(file, ("stars", "text")).texts
    ['So good.', 'No!']

    >>> file = pathlib.Path("reviews.jsonl")
    >>> _ = file.write_text('{"label": 5, "sentences": ["So", "good"]}')
    >>> read_documents(file)
    Documents(texts=['So\ngood'], labels=['5'], in_lines=True, evidence=None)
    """
    counts, rows = Counter(), []
    with progress(f"Reading {escaped_line(path)}"):
        for row in usable_rows(path, columns, counts):
            rows.append((row.label, row.text))
    log_problems(document_problems(path, counts))
    return Documents.of(rows, row.in_lines)


def usable_rows(path, columns, counts: Counter) -> Iterator[_Row]:
    """Reads what `read_documents` returns, one document after the other.

    Counts `documents` and what is `blank`, `too_long`, or `invalid` UTF-8.
    """
    in_lines = None
    for row in document_rows(path, columns, counts):
        _check_label(row.line, row.label, columns)
        if in_lines not in (None, row.in_lines):
            forms = {False: "a text", True: "sentences"}
            raise broken(
                row.line,
                f"{forms[in_lines]}, as in the lines before",
                found=forms[row.in_lines],
            )
        in_lines = row.in_lines
        if is_blank(row.text):
            counts["blank"] += 1
        elif len(row.text.encode()) > LONGEST_DOCUMENT:
            counts["too_long"] += 1
        else:
            counts["documents"] += 1
            yield row
    if not counts["documents"]:
        raise DataError(f"{path}: there is no document in it.")


def _check_label(line, label, columns):
    """Raises DataError for an invalid label, without showing a text."""
    if is_blank(label):
        raise DataError(f"{line}: the label is blank.")
    if len(label) > _LONGEST_LABEL:
        raise broken(
            line,
            f"a label of at most {_LONGEST_LABEL} characters in column "
            f"{columns[0]!r}",
            found=f"{len(label)}. {swapped(columns)}",
        )
    if {*map(unicodedata.category, label)} & {"Cc", "Zl", "Zp"}:
        raise broken(
            line,
            "a label without newlines, tabs and control characters",
            found=beginning(label),
        )


def swapped(columns) -> str:
    """A hint for a label column that contains texts."""
    without_names = ""
    if tuple(columns) == DEFAULT_COLUMNS:
        without_names = ", or --columns 2 1 where no row names them"
    *others, last = columns
    return (
        "If label and text are swapped, use --columns "
        f"{shlex.join([last, *others])}{without_names}"
    )


def document_rows(pattern, columns, counts) -> Iterator[_Row]:
    """The rows of all files that a pattern matches.

    Counts what is `blank`, or `invalid` UTF-8.

    Raises:
        DataError: a file is broken or does not have the columns.
    """
    columns = different_columns(
        columns, "the label's and one or two texts'", most=3
    )
    if is_text_folder(pattern):
        yield from _folder_rows(pattern, columns, counts)
        return
    for path in matching_files(pattern):
        if has_records(path):
            yield from _record_rows(path, columns, counts)
        else:
            cells = rows_of_cells(path)
            rows = chosen_columns(cells, columns, DEFAULT_COLUMNS, counts)
            for line, label, *texts in rows:
                yield _row_of(line, label, texts)


def _folder_rows(folder, columns, counts) -> Iterator[_Row]:
    if columns != DEFAULT_COLUMNS:
        raise DataError(
            f"{escaped_line(folder)} is a directory of text files, which have "
            "no columns: leave out --columns."
        )
    for path, text in texts_in_folder(folder, counts, depth=1):
        line = Line(b"", os.path.join(folder, path), 1)
        yield _Row(line, path.parts[0], text, in_lines=False)


def _record_rows(path, columns, counts) -> Iterator[_Row]:
    records = read_records(path, (*columns, _SENTENCES), counts)
    for line, record in records:
        if record is None:
            counts["blank"] += 1
        else:
            yield _record_row(line, record, *columns)


def _record_row(line, record, label, *texts) -> _Row:
    forms, wanted = [texts], " and ".join(map(repr, texts))
    if len(texts) == 1:
        forms = {texts, (_SENTENCES,)}
        wanted = f"either {wanted} or {_SENTENCES!r}"
    found = [keys for keys in forms if has_keys(record, [label, *keys])]
    if len(found) != 1:
        raise broken(
            line,
            f"the keys {label!r} and {wanted}",
            found=shown_record(line, record),
        )
    name = as_text(value_at(record, label))
    if name is None:
        found = beginning(value_at(record, label))
        raise broken(line, f"a string at {label!r}", found=found)

    [keys] = found
    values = [value_at(record, key) for key in keys]
    if keys == (_SENTENCES,):
        [sentences] = values
        if not are_strings(sentences):
            found = beginning(sentences)
            raise broken(line, f"strings at {_SENTENCES!r}", found=found)
        text = _lines(text for text in sentences if not is_blank(text))
        return _Row(line, name.strip(), text, in_lines=True)
    for key, value in zip(keys, values, strict=True):
        if not isinstance(value, str):
            found = beginning(value)
            raise broken(line, f"a string at {key!r}", found=found)
    return _row_of(line, name, values)


def _row_of(line, label, texts) -> _Row:
    """A document of one text, or a pair, which is blank if one of it is."""
    if len(texts) == 1:
        [text] = texts
        text = without_surrogates(text)
    else:
        text = "" if any(map(is_blank, texts)) else _lines(texts)
    return _Row(line, label.strip(), text, in_lines=len(texts) > 1)


def _lines(sentences) -> str:
    """Sentences as the lines of a text."""
    lines = (text.replace("\n", " ").replace("\t", " ") for text in sentences)
    return without_surrogates("\n".join(lines))
