"""Positions in endless data sets, at which training resumes."""

import sys
from collections.abc import Callable

import tensorflow as tf

from kseq.data.files.dataset_options import IN_PARALLEL
from kseq.data.files.device_parts import read_in_parts


def numbered_batches(
    batch: Callable, read: Callable | None = None, *, step: int = 1
) -> tf.data.Dataset:
    """An endless data set whose batches depend on their position alone.

    Args:
        batch: function of a position, () int64, that returns a batch, a tuple;
            with `read`, the rows of a batch, see `read_in_parts`.
        read: see `read_in_parts`; None if a batch is computed as a whole.
        step: the difference of the positions of two batches.

    Returns:
        Data set, see `with_positions`.
    """

    def starting_at(position):
        rows = tf.data.Dataset.counter(position, step)
        rows = rows.map(batch, **IN_PARALLEL)
        if read is not None:
            return read_in_parts(rows, read)
        rows = rows.map(lambda *whole: (whole, ()))
        return read_in_parts(rows, lambda whole, _: whole)

    return with_positions(
        starting_at, lambda position, batches: position + batches * step
    )


def with_positions(
    starting_at: Callable[[int], tf.data.Dataset],
    position_after: Callable[[int, int], int],
) -> tf.data.Dataset:
    """An endless data set that can start at any of its positions.

    Args:
        starting_at: function of a position, 0 or more, that returns the data
            set from there on.
        position_after: function of a position and of a number of batches, that
            returns the position after them.

    Returns:
        `starting_at(0)`, with both functions as attributes.
    """
    batches = starting_at(0)
    batches.starting_at = starting_at
    batches.position_after = position_after
    return batches


def starting_at(batches: tf.data.Dataset, position: int) -> tf.data.Dataset:
    """A data set from a position on.

    Without `with_positions` the position is a number of batches, which are
    read and skipped.
    """
    if hasattr(batches, "starting_at"):
        return batches.starting_at(position)
    if not position:
        return batches
    print(
        f"Skipping {position} batches that were already used.", file=sys.stderr
    )
    return batches.skip(position)


def position_after(batches: tf.data.Dataset, position: int, count: int) -> int:
    """The position in a data set after a number of batches."""
    if hasattr(batches, "position_after"):
        return batches.position_after(position, count)
    return position + count
