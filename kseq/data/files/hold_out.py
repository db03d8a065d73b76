"""Examples that are held out of training by their names or texts."""

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
    is_out = np.isin(hashes, choose_held_out(hashes))
    if not is_out.any():
        raise DataError(
            f"{path}: no {kind} can be held out, because there is only one. "
            f"Give a file for validation, or {two}."
        )
    return np.flatnonzero(~is_out), np.flatnonzero(is_out)


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
