"""The first rows of files, which show most mistakes without TensorFlow."""

import os

from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder, prepared_folder
from kseq.data.files.text_files import matching_files
from kseq.data.files.url_files import is_url
from kseq.sources import SOURCES


def read_first_rows(content, train, validation=(), columns=()):
    r"""Reads the first row of each file, which shows most mistakes.

    Args:
        content: what the files hold: "pairs", "documents", "tags",
            "dialogues", "text", "captions" or "transcripts".
        train: paths; a pattern names several files. URLs are not read, which
            takes TensorFlow. Or a folder of prepared data.
        validation: the same; may be empty.
        columns: of tables, names or numbers; may be empty. Files of validation
            have the first ones, those that `evaluate` reads.

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
    known = {source.content: source for source in SOURCES if source.content}
    if content not in known:
        raise ValueError(
            f"content must be one of {', '.join(sorted(known))}. "
            f"Received: {content!r}"
        )
    source = known[content]
    check_columns(columns, source, source.more_columns)
    if folder := prepared_folder(train):
        PreparedFolder(folder).record(source.prepared)
        train = ()
    splits = [
        [path for path in paths if not is_url(path)]
        for paths in (train, validation)
    ]
    for paths in splits:
        for path in paths:
            if not os.path.isdir(path):  # which some sources read
                matching_files(path)
    of_validation = columns[: source.num_columns + source.optional_columns]
    for paths, named in zip(splits, (columns, of_validation), strict=True):
        for path in paths:
            next(iter(source.first_rows(path, named, len(paths))), None)


def check_columns(columns, source, more=0):
    """DataError if columns are given, but not the number that a source names.

    There may be `more` of them.
    """
    number = source.num_columns
    if columns and not number:
        raise DataError(
            f"Files of {source.content} have no columns: leave out --columns."
        )
    most = number + source.optional_columns + more
    if columns and not number <= len(columns) <= most:
        names = "one column" if number == 1 else f"{number} columns"
        names += f", or {most}" * (most > number)
        raise DataError(
            f"--columns takes {names} here; found {' '.join(columns)}."
        )
