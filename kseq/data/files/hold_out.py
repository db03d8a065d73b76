"""Examples that are held out of training by their names or texts."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kseq.data.files.data_error import DataError
from kseq.data.files.source_hashes import choose_held_out, source_hashes
from kseq.data.files.table_folders import is_text_folder
from kseq.data.files.text_files import matching_files


def hold_out(examples, fields: tuple[str, ...], path, kind: str, two: str):
    """The examples that stay in training, and those that are held out.

    Args:
        examples: a named tuple of lists; those of the same name stay together.
        fields: the lists that have an item for each name.
        path: of their table, for the message.
        kind: what a name is the name of, for the message.
        two: what would be enough, for the message.

    Raises:
        DataError: there is only one.
    """
    names = (name.encode(errors="replace") for name in examples.names)
    return tuple(
        examples._replace(
            **{
                name: [getattr(examples, name)[number] for number in numbers]
                for name in fields
            }
        )
        for numbers in _split_numbers(source_hashes(names), path, kind, two)
    )


def _split_numbers(hashes, path, kind, two):
    """The numbers of the training examples, and of those that are held out."""
    is_out = np.isin(hashes, choose_held_out([hashes], len(hashes)))
    if not is_out.any():
        raise DataError(
            f"{path}: no {kind} can be held out, because there is only one. "
            f"Give a file for validation, or {two}."
        )
    return np.flatnonzero(~is_out), np.flatnonzero(is_out)


class Rows(NamedTuple):
    """What a split of rows depends on, without their texts.

    Args:
        path: of their file.
        hashes: (N,), the same for rows that count as the same.
        problems: lines of text: what is wrong with the file.
        sizes: (N,) int64, numbers of something in each row, or None.
        labels: the label of each document, or all tags.
        single: labels or tags that occur only once, sorted.
        in_lines: of documents, see `Documents`.
    """

    path: str | os.PathLike
    hashes: np.ndarray
    problems: list[str]
    sizes: np.ndarray | None = None
    labels: Sequence[str] = ()
    single: Sequence[str] = ()
    in_lines: bool = False


class RowSplit(NamedTuple):
    """Which rows of a corpus are held out, and what is said about them.

    Args:
        rest: (R,) int, the numbers of those to train on, sorted.
        held_out: (H,) int, the numbers of the others, sorted.
        facts: lines of text: the numbers of rows.
        problems: lines of text: what is wrong with some of them.
    """

    rest: np.ndarray
    held_out: np.ndarray
    facts: tuple[str, ...]
    problems: tuple[str, ...]


class RowReader(NamedTuple):
    """How rows of a kind are read and split.

    Args:
        read: function of a path and of a function that it calls with each
            row; gives `Rows`.
        split: function of the `Rows` of training and of validation, or None;
            gives `RowSplit`, see `split_rows`.
        check: function of `Rows` and of all rows, which it reads as far as
            needed; raises DataError if they are not of the kind.
    """

    read: Callable[[str | os.PathLike, Callable[[Any], None]], Rows]
    split: Callable[[Rows, Rows | None], RowSplit]
    check: Callable[[Rows, Iterable[Any]], None] = lambda found, rows: None


def read_and_split(reader: RowReader, train, validation):
    """Reads rows into memory.

    Args:
        reader: of their kind.
        train: path.
        validation: path, or None.

    Returns:
        The rows to train on, those to validate on, `Rows` of training, and
        `RowSplit`.

    Raises:
        DataError: a file cannot be used, or the two do not go together.
    """
    for path in (train, validation):  # both, before the first is read
        if path is not None and not is_text_folder(path):
            matching_files(path)
    rows, held_out, others = [], [], None
    found = reader.read(train, rows.append)
    reader.check(found, rows)
    if validation is not None:
        others = reader.read(validation, held_out.append)
    split = reader.split(found, others)
    held_out += [rows[number] for number in split.held_out]
    return [rows[number] for number in split.rest], held_out, found, split


def split_rows(
    rows: Rows,
    validation: Rows | None,
    kind: str,
    *,
    two: str = "",
    unit: str = "",
    choose: Callable[[], np.ndarray] | None = None,
) -> RowSplit:
    """Chooses what is held out, or compares with rows for validation.

    Args:
        rows: of training.
        validation: of validation, or None.
        kind: of a row, see `hold_out`.
        two: see `hold_out`.
        unit: what `sizes` are numbers of.
        choose: function that gives the numbers of the rows that are held out,
            sorted; by default they are chosen by `hashes`, see `hold_out`.

    Raises:
        DataError: there is only one row.
    """
    problems = [*rows.problems]
    if validation is None:
        if choose is None:
            _, held_out = _split_numbers(rows.hashes, rows.path, kind, two)
        else:
            held_out = choose()
        title = "held out of training"
        judged = _size(rows, held_out, unit)
    else:
        held_out, title = np.zeros(0, np.int64), validation.path
        judged = _size(validation, np.arange(len(validation.hashes)), unit)
        problems += validation.problems
        problems += overlap(np.isin(validation.hashes, rows.hashes), kind)
    rest = np.setdiff1d(np.arange(len(rows.hashes)), held_out)
    facts = (
        f"Training {kind}s: {_size(rows, rest, unit)} ({rows.path})",
        f"Validation {kind}s: {judged} ({title})",
    )
    return RowSplit(rest, held_out, facts, tuple(problems))


def _size(rows, numbers, unit):
    size = f"{len(numbers)}"
    return f"{size}, {rows.sizes[numbers].sum()} {unit}" if unit else size


def overlap(is_known, kind: str) -> list[str]:
    """A line about examples that are in training and in validation, or none.

    Args:
        is_known: bool of each example of validation, whether it is in training.
        kind: of an example.
    """
    both = np.count_nonzero(is_known)
    if not both:
        return []
    return [
        f"{both} of {len(is_known)} validation {kind}s are also in "
        "training: scores on them will be too high."
    ]
