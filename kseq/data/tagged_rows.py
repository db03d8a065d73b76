"""The rows of files with a tag for each word, in all their forms."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from kseq.data.data_error import DataError
from kseq.data.tables import (
    are_numbers,
    beginning,
    broken,
    check_width,
    decoded,
    find_columns,
    json_lines,
    json_object,
    kind_of,
    rows_of_cells,
    two_columns,
    without_surrogates,
)
from kseq.data.text_files import Line, matching_files, read_lines

DEFAULT_COLUMNS = ("words", "tags")
LONGEST_TAG = 100  # characters

_COLUMNS_OF_CONLLU = ("2", "4")  # FORM and UPOS
_SPACE = b" \t\n\v\f\r"  # what separates words, in a served graph too


class _Row(NamedTuple):
    line: Line
    words: list[str]
    tags: list[str]


def tagged_rows(pattern, columns, counts) -> Iterator[_Row]:
    """The sentences of all files that a pattern matches.

    Args:
        pattern: path.
        columns: of words and tags.
        counts: `collections.Counter`, counts what is `blank` or `invalid`.

    Raises:
        DataError: a file is broken or does not have the columns, or a
            sentence does not have one tag for each word.
    """
    columns = _checked(columns)
    known = set()
    for path in matching_files(pattern):
        for row in _rows_of(path, columns, counts):
            _check_counts(row)
            for tag in set(row.tags) - known:
                _check_tag(row.line, tag)
                known.add(tag)
            yield row


def _checked(columns) -> tuple[str, str]:
    columns = tuple(columns)
    if len(columns) != 2 or not all(columns) or columns[0] == columns[1]:
        raise DataError(
            "columns takes two different names or numbers, those of words and "
            f"of tags. Received: {columns!r}"
        )
    return columns


def _rows_of(path, columns, counts):
    kind, lines = kind_of(path), read_lines(path)
    if kind == "json":
        return _json_rows(json_lines(lines, counts), *columns)
    if kind is None:
        return _column_rows(lines, columns, counts)
    cells = rows_of_cells(lines, kind)
    return (
        _Row(line, _split(words), _split(tags))
        for line, words, tags in two_columns(
            cells, columns, DEFAULT_COLUMNS, counts
        )
    )


def _split(text) -> list[str]:
    """The words of a text, by white space of ASCII alone."""
    return [word.decode() for word in text.encode().split()]


def _check_counts(row):
    if len(row.words) != len(row.tags):
        raise broken(
            row.line,
            "one tag for each word",
            found=f"{len(row.words)} words and {len(row.tags)} tags",
        )


def _check_tag(line, tag):
    if len(tag) > LONGEST_TAG:
        raise broken(
            line,
            f"tags of at most {LONGEST_TAG} characters",
            found=f"one of {len(tag)}",
        )
    if not tag or " " in tag or not tag.isprintable():
        raise broken(
            line,
            "tags without white space and control characters",
            found=beginning(tag),
        )


def _json_rows(lines, words, tags) -> Iterator[_Row]:
    for line in lines:
        record = json_object(line)
        if words not in record or tags not in record:
            raise broken(
                line,
                f"the keys {words!r} and {tags!r}",
                found=beginning(line.text),
            )
        found = [_items(line, key, record[key]) for key in (words, tags)]
        for word in found[0]:
            _check_word(line, word)
        yield _Row(line, *found)


def _items(line, key, value) -> list[str]:
    if isinstance(value, str):
        return _split(without_surrogates(value))
    if not isinstance(value, list) or not all(
        isinstance(item, str | int) for item in value
    ):
        raise broken(
            line,
            f"a list of strings, or a string, at {key!r}",
            found=beginning(value),
        )
    return [
        without_surrogates(item if isinstance(item, str) else json.dumps(item))
        for item in value
    ]


def _check_word(line, word):
    if not word or any(byte in _SPACE for byte in word.encode()):
        raise broken(line, "words without white space", found=beginning(word))


def _column_rows(lines, columns, counts) -> Iterator[_Row]:
    """Of a file with a line for each word."""
    start, words, tags = None, [], []
    places = width = None
    for line in lines:
        cells = _cells(line)
        if cells is None:
            continue
        if not cells:
            if words:
                yield _Row(start, words, tags)
            start, words, tags = None, [], []
            continue
        if width is None:
            width, places = len(cells), _places(line, cells, columns)
        check_width(line, cells, width)
        word, tag = decoded([cells[place] for place in places], counts)
        _check_word(line, word)
        _check_tag(line, tag)
        start = start or line
        words.append(word)
        tags.append(tag)
    if words:
        yield _Row(start, words, tags)


def _cells(line) -> list[bytes] | None:
    """Of a line; none of a blank one, None for what is not a word."""
    text = line.text.strip(_SPACE)
    cells = [cell.strip(_SPACE) for cell in text.split(b"\t")]
    if _is_conllu(line.path) and text:
        return None if not cells[0].isdigit() else cells
    return text.split() if len(cells) == 1 else cells


def _places(line, cells, columns) -> tuple[int, int]:
    if _is_conllu(line.path) and columns == DEFAULT_COLUMNS:
        columns = _COLUMNS_OF_CONLLU
    if are_numbers(columns):
        return find_columns(line, cells, columns)
    if len(cells) == 2 and columns == DEFAULT_COLUMNS:
        return 0, 1
    raise broken(
        line,
        "a word and its tag in two columns",
        found=f"{len(cells)} in {beginning(line.text)}. Choose the two by "
        "their numbers, for example --columns 1 4",
    )


def _is_conllu(path):
    return path.lower().removesuffix(".gz").endswith(".conllu")
