"""Paths on a command line to texts."""

import os

from kseq.data.files.data_error import DataError
from kseq.data.files.tables import kind_of
from kseq.data.text.parallel_text import ParallelText


def parallel_texts(option, paths, columns) -> tuple[ParallelText, ...]:
    """Makes one text of each table, and of each two files that are none.

    Args:
        option: str, what the paths are, for messages.
        paths: of tables, or of a source and then its target.
        columns: of the tables, see `ParallelText`.

    Raises:
        DataError: a path is empty, or a source has no target.
    """
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not paths or not all(map(os.fspath, paths)):
        raise DataError(
            f"{option} expects paths; found "
            f"{'an empty one' if paths else 'none'}. Is a shell variable unset?"
        )
    columns = tuple(columns)
    if len(paths) == 1:
        return (ParallelText(*paths, columns=columns),)
    texts = []
    rest = iter(paths)
    for path in rest:
        if kind_of(path):
            texts.append(ParallelText(path, columns=columns))
            continue
        target = next(rest, None)
        if target is None or kind_of(target):
            raise DataError(
                f"{option} takes tables (.tsv, .csv, .jsonl), or a source "
                f"followed by its target; {path} has no target. Received: "
                f"{', '.join(map(str, paths))}"
            )
        texts.append(ParallelText(path, target))
    return tuple(texts)


def check_pair_columns(columns, texts):
    """Raises DataError unless columns are two, and there is a table."""
    if not columns:
        return
    if (
        isinstance(columns, str)
        or len(columns) != 2
        or columns[0] == columns[1]
        or not all(columns)
    ):
        raise DataError(
            "columns takes two different names or numbers, the source's and "
            f"the target's. Received: {columns!r}"
        )
    if all(text.target is not None for text in texts):
        raise DataError(
            f"columns is for tables; {texts[0]} are two files, source and "
            "target; swap them to change the direction."
        )
