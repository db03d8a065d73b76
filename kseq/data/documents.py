"""Labelled documents: long texts and what they are."""

import itertools
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kseq.data.data_error import DataError
from kseq.data.text_files import Line, read_lines

LONGEST_DOCUMENT = 1_000_000  # bytes; longer ones are left out

_SENTENCES = "sentences"
_SURROGATE = re.compile("[\ud800-\udfff]")

_log = logging.getLogger(__name__)


class Documents(NamedTuple):
    """Texts and their labels, all in memory.

    Args:
        texts: one string a document.
        labels: the same number.
        in_lines: whether each line of a text is a ready sentence.
        evidence: of the built-in corpus alone, for each document the index
            of the sentence that decides, and the word in it that does.
    """

    texts: list[str]
    labels: list[str]
    in_lines: bool = False
    evidence: list[tuple[int, str]] | None = None


class _Row(NamedTuple):
    line: Line
    label: str
    text: str
    in_lines: bool


def read_documents(
    path: str | os.PathLike, columns: tuple[str, str] = ("label", "text")
) -> Documents:
    r"""Reads labelled documents from JSON lines or from a table.

    A .jsonl or .jsonl.gz file holds one JSON object a line, with a label
    and either a text or "sentences", a list of strings. Any other file is a
    table, plain or .gz: a first line names its columns, or there are two,
    label, TAB, text. Quotes are text.

    All documents are held in memory. Blank ones and those over a million
    bytes are left out, and invalid UTF-8 becomes U+FFFD; both are counted and
    logged.

    Args:
        path: a file, or a pattern that matches several, read in the order
            of their names.
        columns: the keys or columns of the label and of the text. A label
            is a string, an integer, or true or false; white space around it
            is left out.

    Returns:
        Documents, in the order of the file. Ready sentences are lines of
        their text; those that are blank are left out.

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
    counts = Counter()
    texts, labels, in_lines = [], [], None
    for row in _rows(path, *columns, counts):
        if not row.label:
            raise DataError(f"{row.line}: the label is blank.")
        if in_lines not in (None, row.in_lines):
            forms = {False: "a text", True: "sentences"}
            raise _broken(
                row.line,
                f"{forms[in_lines]}, as in the lines before",
                found=forms[row.in_lines],
            )
        in_lines = row.in_lines
        if not row.text.strip():
            counts["blank"] += 1
        elif len(row.text.encode()) > LONGEST_DOCUMENT:
            counts["too_long"] += 1
        else:
            texts.append(row.text)
            labels.append(row.label)

    _warn(path, counts, read=len(texts))
    if not texts:
        raise DataError(f"{path}: there is no document in it.")
    return Documents(texts, labels, in_lines)


def _warn(path, counts, read):
    if left_out := counts["blank"] + counts["too_long"]:
        _log.warning(
            f"{path}: {left_out} of {left_out + read} documents are left out: "
            f"{counts['blank']} blank, {counts['too_long']} over "
            f"{LONGEST_DOCUMENT} bytes."
        )
    if counts["invalid"]:
        _log.warning(
            f"{path}: {counts['invalid']} lines are not valid UTF-8; the "
            "wrong bytes become U+FFFD."
        )


def _rows(pattern, label, text, counts) -> Iterator[_Row]:
    files = itertools.groupby(read_lines(pattern), lambda line: line.path)
    for path, lines in files:
        decoded = _decoded(lines, counts)
        if path.removesuffix(".gz").endswith(".jsonl"):
            for line, content in decoded:
                yield _json_row(line, content, label, text)
        else:
            yield from _table_rows(decoded, label, text)


def _decoded(lines, counts) -> Iterator[tuple[Line, str]]:
    """Lines that are not blank, with their strings."""
    for line in lines:
        content = line.text.removesuffix(b"\r")
        try:
            decoded = content.decode()
        except UnicodeDecodeError:
            counts["invalid"] += 1
            decoded = content.decode(errors="replace")
        if decoded.strip():
            yield line, decoded
        else:
            counts["blank"] += 1


def _table_rows(decoded, label, text) -> Iterator[_Row]:
    columns = None
    for line, content in decoded:
        cells = content.split("\t")
        if columns is None:
            if label in cells and text in cells:
                columns = cells
                continue
            if len(cells) != 2 or (label, text) != ("label", "text"):
                raise _broken(
                    line,
                    f"the columns {label!r} and {text!r}",
                    found=", ".join(map(repr, cells))[:200],
                )
            columns = [label, text]
        if len(cells) != len(columns):
            raise _broken(
                line,
                f"{len(columns)} columns, {', '.join(columns)}",
                found=f"{len(cells)} in {_beginning(content)}",
            )
        yield _Row(
            line,
            label=cells[columns.index(label)].strip(),
            text=cells[columns.index(text)],
            in_lines=False,
        )


def _json_row(line, content, label, text) -> _Row:
    record = _json_object(line, content)
    keys = record.keys() & {text, _SENTENCES}
    if label not in record or len(keys) != 1:
        raise _broken(
            line,
            f"the keys {label!r} and either {text!r} or {_SENTENCES!r}",
            found=_beginning(content),
        )
    (key,) = keys
    name, value = record[label], record[key]
    if not isinstance(name, str | int):
        raise _broken(line, f"a string at {label!r}", found=_beginning(name))
    if not isinstance(name, str):
        name = json.dumps(name)  # as it is in the file

    in_lines = key == _SENTENCES
    if in_lines and not _are_strings(value):
        raise _broken(line, f"strings at {key!r}", found=_beginning(value))
    if not in_lines and not isinstance(value, str):
        raise _broken(line, f"a string at {key!r}", found=_beginning(value))
    if in_lines:
        sentences = [sentence for sentence in value if sentence.strip()]
        value = "\n".join(map(_in_a_line, sentences))
    return _Row(line, _unicode(name).strip(), _unicode(value), in_lines)


def _json_object(line, content) -> dict:
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise _broken(line, "a JSON object", found=_beginning(content))
    return record


def _are_strings(value) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in value
    )


def _in_a_line(sentence) -> str:
    return sentence.replace("\n", " ").replace("\t", " ")


def _unicode(text) -> str:
    """Without the halves of characters that JSON can spell."""
    return _SURROGATE.sub("\ufffd", text)


def _broken(line, expected, found) -> DataError:
    return DataError(f"{line}: expected {expected}; found {found}")


def _beginning(value) -> str:
    return f"{value!r:.60}"
