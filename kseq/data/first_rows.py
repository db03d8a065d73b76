"""The first rows of files: most mistakes, found without TensorFlow."""

from collections import Counter

from kseq.data.dialogues.dialogue_files import dialogues_of_files
from kseq.data.documents.document_labels import DEFAULT_COLUMNS
from kseq.data.documents.documents import document_rows
from kseq.data.files.data_error import DataError
from kseq.data.files.named_texts import CAPTIONS, TRANSCRIPTS, named_rows
from kseq.data.files.tables import kind_of
from kseq.data.files.text_files import matching_files, read_lines
from kseq.data.running_text.text_documents import texts_of
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS as WORDS_AND_TAGS
from kseq.data.tags.tagged_rows import tagged_rows
from kseq.data.text.pair_table import PairTable

_ROWS = {
    "captions": lambda path, columns: named_rows(path, columns, CAPTIONS),
    "dialogues": lambda path, columns: dialogues_of_files(path, Counter()),
    "documents": lambda path, columns: document_rows(
        path, columns or DEFAULT_COLUMNS, Counter()
    ),
    "pairs": lambda path, columns: PairTable(path, columns).rows(),
    "tags": lambda path, columns: tagged_rows(
        path, columns or WORDS_AND_TAGS, Counter()
    ),
    "text": lambda path, columns: texts_of(path, *columns),
    "transcripts": lambda path, columns: named_rows(path, columns, TRANSCRIPTS),
}


def read_first_rows(content, train, validation=(), columns=()):
    r"""Reads the first row of each file, which may be all that is wrong.

    Args:
        content: what the files hold: "pairs", "documents", "tags",
            "dialogues", "text", "captions" or "transcripts".
        train: paths; a pattern names several files.
        validation: the same; may be empty.
        columns: of tables, names or numbers; may be empty.

    Raises:
        DataError: a file or its first row cannot be used.
        ValueError: there is no such content.

    Example:
    >>> import pathlib
    >>> _ = pathlib.Path("a.csv").write_text("en,de\nGo.,Los.\n")
    >>> read_first_rows("pairs", ["a.csv"], columns=("en", "fr"))
    Traceback (most recent call last):
        ...
    kseq.data.files.data_error.DataError: a.csv:1: expected the columns 'en' ...
    """
    if content not in _ROWS:
        raise ValueError(
            f"content must be one of {', '.join(_ROWS)}. Received: {content!r}"
        )
    _check_columns(content, columns)
    splits = [train, validation]
    for paths in splits:
        for path in paths:
            matching_files(path)
    for paths in splits:
        for path in paths:
            next(iter(_rows(content, path, len(paths), columns)), None)


def check_columns(columns, number):
    """DataError if there are columns, but not that many.

    Args:
        columns: names or numbers, or None.
        number: int.
    """
    if columns and len(columns) != number:
        names = "one column" if number == 1 else f"{number} columns"
        raise DataError(
            f"--columns names {names} here; found {' '.join(columns)}."
        )


def _check_columns(content, columns):
    if content == "dialogues" and columns:
        raise DataError("Dialogues have no columns: leave out --columns.")
    check_columns(columns, 1 if content == "text" else 2)


def _rows(content, path, number, columns):
    """Of two files of pairs that are no tables each has one side."""
    if content == "pairs" and number > 1 and not kind_of(path):
        return read_lines(path)
    return _ROWS[content](path, columns)
