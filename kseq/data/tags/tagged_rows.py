"""The rows of files with a tag for each word, in all formats."""

from collections.abc import Iterator
from typing import NamedTuple

from kseq.data.files.blank_text import is_blank
from kseq.data.files.compressed_files import uncompressed_name
from kseq.data.files.records import (
    as_text,
    has_keys,
    has_records,
    read_records,
    shown_record,
    value_at,
    without_surrogates,
)
from kseq.data.files.tables import (
    are_numbers,
    beginning,
    broken,
    check_width,
    chosen_columns,
    decoded,
    different_columns,
    find_columns,
    kind_of,
    rows_of_cells,
)
from kseq.data.files.text_files import Line, matching_files, read_lines

DEFAULT_COLUMNS = ("words", "tags")
LONGEST_TAG = 100  # characters
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"

_COLUMNS_OF_CONLLU = ("2", "4")  # FORM and UPOS
_START_OF_DOCUMENT = b"-DOCSTART-"  # a line of CoNLL-2003
_SPACE = b" \t\n\v\f\r"  # what separates words, in a served graph too


class _Row(NamedTuple):
    line: Line
    words: list[str]
    tags: list[str]


def tagged_rows(pattern, columns, counts) -> Iterator[_Row]:
    """The sentences of all files that a pattern matches.

    Counts what is `blank`, or `invalid` UTF-8, and words that are `spaced`.

    Raises:
        DataError: a file is broken or does not have the columns, or a
            sentence does not have one tag for each word.
    """
    columns = different_columns(columns, "those of words and of tags")
    known = set()
    for path in matching_files(pattern):
        for row in _rows_of(path, columns, counts):
            _check_counts(row)
            for tag in set(row.tags) - known:
                _check_tag(row.line, tag)
                known.add(tag)
            yield row


def _rows_of(path, columns, counts):
    if has_records(path):
        return _record_rows(path, columns, counts)
    if kind_of(path) is None:
        return _column_rows(path, columns, counts)
    return (
        _Row(line, _split(words), _split(tags))
        for line, words, tags in chosen_columns(
            rows_of_cells(path), columns, DEFAULT_COLUMNS, counts
        )
    )


def _split(text) -> list[str]:
    """The words of a text, separated by ASCII white space only."""
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


def _record_rows(path, columns, counts) -> Iterator[_Row]:
    for line, record in read_records(path, columns, counts):
        if record is None:
            counts["blank"] += 1
            continue
        if not has_keys(record, columns):
            raise broken(
                line,
                "the keys {!r} and {!r}".format(*columns),
                found=shown_record(line, record),
            )
        words, tags = (
            _items(line, key, value_at(record, key)) for key in columns
        )
        for word in words:
            _check_word(line, word)
        yield _Row(line, words, tags)


def _items(line, key, value) -> list[str]:
    if isinstance(value, str):
        return _split(without_surrogates(value))
    items = list(map(as_text, value)) if isinstance(value, list) else [None]
    if None in items:
        raise broken(
            line,
            f"a list of strings, or a string, at {key!r}",
            found=beginning(value),
        )
    return items


def _check_word(line, word):
    if not word or any(byte in _SPACE for byte in word.encode()):
        raise broken(line, "words without white space", found=beginning(word))


def _column_rows(path, columns, counts) -> Iterator[_Row]:
    """The rows of a file with a line for each word."""
    start, words, tags = None, [], []
    places = width = None
    is_conllu = _is_conllu(path)
    if is_conllu and columns == DEFAULT_COLUMNS:
        columns = _COLUMNS_OF_CONLLU
    for line in read_lines(path):
        cells = _cells(line, is_conllu)
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
        if is_conllu:  # whose words may have spaces
            counts["spaced"] += " " in word
            word = word.replace(" ", NO_BREAK_SPACE)
        _check_word(line, word)
        _check_tag(line, tag)
        start = start or line
        words.append(word)
        tags.append(tag)
    if words:
        yield _Row(start, words, tags)


def _cells(line, is_conllu) -> list[bytes] | None:
    """The cells of a line; none for a blank one, None if it is not a word."""
    text = b"" if is_blank(line.text) else line.text.strip(_SPACE)
    if text.startswith(_START_OF_DOCUMENT):
        return None
    cells = [cell.strip(_SPACE) for cell in text.split(b"\t")]
    if is_conllu and text:
        return None if not cells[0].isdigit() else cells
    return text.split() if len(cells) == 1 else cells


def _places(line, cells, columns) -> tuple[int, int]:
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


def _is_conllu(path) -> bool:
    """Whether a file is CoNLL-U, by its name or its first word."""
    if uncompressed_name(path).lower().endswith(".conllu"):
        return True
    for line in read_lines(path):
        text = line.text.strip(_SPACE)
        if text and not text.startswith(b"#"):
            cells = text.split(b"\t")
            return len(cells) == 10 and cells[0] in (b"1", b"1-2", b"0.1")
    return False
