"""Examples that are held out of training by their names or texts."""

from typing import NamedTuple

import numpy as np

from kseq.data.files.data_error import DataError
from kseq.data.files.source_hashes import choose_held_out, source_hashes


def hold_out(
    examples,
    fields: tuple[str, ...],
    path,
    kind: str,
    two: str,
):
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
        for numbers in split_numbers(source_hashes(names), path, kind, two)
    )


def split_numbers(hashes, path, kind: str, two: str):
    """The numbers of the training examples, and of those that are held out.

    Args:
        hashes: (N,) int64, see `source_hashes`, of what identifies an example.
        path: see `hold_out`.
        kind: see `hold_out`.
        two: see `hold_out`.

    Raises:
        DataError: there is only one.
    """
    is_out = np.isin(hashes, choose_held_out([hashes], len(hashes)))
    if not is_out.any():
        raise DataError(
            f"{path}: no {kind} can be held out, because there is only one. "
            f"Give a file for validation, or {two}."
        )
    return np.flatnonzero(~is_out), np.flatnonzero(is_out)


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


def split_rows(rows, validation, kind: str, two: str, unit: str) -> RowSplit:
    """Chooses what is held out, or compares with rows for validation.

    Args:
        rows: of training: has `path`; `hashes`, (N,) int64, see
            `source_hashes`; `sizes`, (N,) int64; and `report`, whose
            `problems` are those of a path.
        validation: the same, or None.
        kind: of a row, see `hold_out`.
        two: see `hold_out`.
        unit: what `sizes` are numbers of.

    Raises:
        DataError: there is only one row.
    """
    problems = rows.report.problems(rows.path)
    if validation is None:
        rest, held_out = split_numbers(rows.hashes, rows.path, kind, two)
        sizes, title = rows.sizes[held_out], "held out of training"
    else:
        rest, held_out = np.arange(len(rows.hashes)), np.zeros(0, np.int64)
        sizes, title = validation.sizes, validation.path
        problems += validation.report.problems(validation.path)
        problems += overlap(np.isin(validation.hashes, rows.hashes), kind)
    facts = (
        f"Training {kind}s: {_size(rows.sizes[rest], unit)} ({rows.path})",
        f"Validation {kind}s: {_size(sizes, unit)} ({title})",
    )
    return RowSplit(rest, held_out, facts, tuple(problems))


def _size(sizes, unit):
    return f"{len(sizes)}, {sizes.sum()} {unit}"


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
