"""A small set of shapes for all training batches."""

import logging
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
import tensorflow as tf

from kseq.devices import has_gpu
from kseq.user_error import check_integers

# The maximum number of shapes; fewer are chosen once padding is at most this
# fraction of all positions.
MAX_SHAPES = 16
_PADDING = 0.115
_STEP = 2  # of lengths up to 32; half of that without a choice of shapes
_LENGTHS = 32  # on each axis, to choose shapes from
_ROUNDS = 10  # of exchanges, at most
# Rows are multiples of the last of these that leaves out at most this part of
# them: Tensor Cores compute with multiples of 8.
_TILES = ((2, 8), (4, 8), (8, 8), (16, 30), (32, 30), (64, 30))

_DOUBLED_AT = [2**power for power in range(5, 31)]

_log = logging.getLogger(__name__)


class BatchShapes:
    """The padded lengths of all batches, chosen from the lengths of examples.

    An example is padded to the smallest shape that it fits into. Shapes are
    added greedily, and exchanged for better ones, until padding is below 11.5 %
    of all positions. XLA compiles a step for each shape.

    Args:
        lengths: (N, D) int, of examples: their tokens on D axes.
        counts: (N,) int, how many examples have these lengths; None for one
            each.
        max_shapes: int, how many shapes are chosen at most.
        size: function of lengths (..., D) and an axis, the positions (...) of
            an example: `np.sum` for pairs, whose sides are padded separately,
            `np.prod` for a grid of sentences or words by pieces.

    Attributes:
        lengths: (K, D) int64, the shapes, those with fewer positions first.
        padding: float, the fraction of positions that are padding.

    Call arguments:
        lengths: (B, D) int64.

    Returns:
        (B, D) int64, the shape of each example. An example longer than all in
        `lengths` is padded as by `padded_lengths`.

    Example:
    >>> shapes = BatchShapes([(3, 4), (5, 4), (20, 18)], max_shapes=2)
    >>> shapes.lengths.tolist()
    [[6, 4], [20, 18]]
    >>> shapes(tf.constant([[5, 2], [6, 5]], tf.int64)).numpy().tolist()
    [[6, 4], [20, 18]]
    """

    def __init__(
        self,
        lengths: np.ndarray,
        counts: np.ndarray | None = None,
        *,
        max_shapes: int,
        size: Callable = np.sum,
    ):
        lengths = np.asarray(lengths, np.int64)
        if counts is None:
            counts = np.ones(len(lengths))
        candidates, positions, counts_of_cells = _candidates(
            lengths, counts, size
        )
        least = float(size(lengths, axis=-1) @ counts)
        most = least / (1 - _PADDING)
        chosen = _chosen(positions, counts_of_cells, max_shapes, most)
        positions = positions[chosen]
        total = float(positions.min(axis=0) @ counts_of_cells)
        used = candidates[chosen][np.unique(positions.argmin(axis=0))]
        order = np.argsort(size(used, axis=-1), kind="stable")
        self.lengths = used[order]
        self.padding = 1 - least / total

    def __call__(self, lengths):
        number = self.number_of(lengths)
        known = np.pad(self.lengths, [(0, 1), (0, 0)])
        return tf.where(
            (number < len(self.lengths))[:, None],
            tf.gather(known, number),
            padded_lengths(lengths),
        )

    def number_of(self, lengths):
        """The index of the shape of each example, (B,); K if none fits."""
        # A pass for each shape is ten times as fast as a (B, K, D) array.
        axes = tf.unstack(lengths, self.lengths.shape[1], axis=1)
        found = tf.fill(tf.shape(axes[0]), np.int64(len(self.lengths)))
        for number in reversed(range(len(self.lengths))):
            longest = self.lengths[number]
            fits = tf.ones_like(found, bool)
            for axis, length in zip(axes, longest, strict=True):
                fits &= axis <= length
            found = tf.where(fits, np.int64(number), found)
        return found

    def log(self):
        """Logs the number of shapes and the padding."""
        number = len(self.lengths)
        _log.info(
            f"{number} batch shape{'s' * (number > 1)}, "
            f"{100 * self.padding:.1f} % padding"
        )


def shapes_wanted(max_shapes: int | Literal["auto"] | None) -> int | None:
    """How many shapes an argument `max_shapes` allows, or None for any number.

    "auto" allows 16 if there is a GPU, otherwise any number.

    Raises:
        ArgumentError: it is no integer above 0, None or "auto".
    """
    if max_shapes == "auto":
        return MAX_SHAPES if has_gpu() else None
    check_integers(max_shapes=max_shapes, optional=True)
    return max_shapes


def whole_rows(rows):
    """The number of rows of a batch, which are divided evenly over devices.

    It does not depend on the number of devices, and neither do the batches.

    Args:
        rows: (K,) int array, at least 1.

    Returns:
        At most `rows`, a multiple of a power of two: of 8 if at most an eighth
        of them is left out, of 64 if it is a thirtieth.
    """
    whole = rows
    for tile, part in _TILES:
        rest = rows % tile
        whole = np.where(part * rest <= rows, rows - rest, whole)
    return whole


def padded_lengths(lengths, step=4):
    """The next multiples of 4, above 32 of 8, above 64 of 16, and so on.

    Lengths are int64; `step` is in place of 4.
    """
    doublings = tf.math.count_nonzero(
        lengths[..., None] > tf.constant(_DOUBLED_AT, tf.int64), axis=-1
    )
    steps = tf.bitwise.left_shift(tf.constant(step, tf.int64), doublings)
    return (lengths + steps - 1) // steps * steps


def with_shapes(
    batches: tf.data.Dataset, examples: Iterable[tuple]
) -> tf.data.Dataset:
    """The same data set, with the shapes of its batches, to be compiled.

    Args:
        batches: of `(inputs, labels, sample_weight)`.
        examples: a batch of each shape.

    Returns:
        The data set, whose attribute `shapes` has the `element_spec` of each
        of the examples.
    """
    batches.shapes = tuple(
        tf.nest.map_structure(tf.TensorSpec.from_tensor, example)
        for example in examples
    )
    return batches


def _candidates(lengths, counts, size):
    """The candidates that shapes are chosen from.

    Returns:
        Shapes (C, D); the positions (C, N) of each of N different examples in
        each of them, infinite if it does not fit; and the number of examples
        (N,). The last shape fits all.
    """
    longest = lengths.max(axis=0)
    rounded = padded_lengths(tf.constant(lengths), _STEP).numpy()
    rounded = np.minimum(rounded, longest)
    axes = [_thinned(np.unique(column)) for column in rounded.T]
    rounded = np.stack(
        [
            axis[np.searchsorted(axis, column)]
            for axis, column in zip(axes, rounded.T, strict=True)
        ],
        axis=1,
    )
    cells, places = np.unique(rounded, axis=0, return_inverse=True)
    counts = np.bincount(places.ravel(), weights=counts)
    candidates = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    candidates = candidates.reshape(-1, len(axes))
    fits = (candidates[:, None] >= cells).all(axis=2)
    positions = size(candidates, axis=-1)[:, None]
    return candidates, np.where(fits, positions, np.inf), counts


def _thinned(lengths):
    """At most 32 lengths, the longest included, none close to the next."""
    while len(lengths) > _LENGTHS:
        ratios = lengths[1:] / lengths[:-1]
        lengths = np.delete(lengths, np.argmin(ratios))
    return lengths


def _chosen(positions, counts, max_shapes, enough):
    """The indices of the shapes that are chosen, see `_candidates`.

    No more are chosen once the total number of positions is `enough`.
    """

    def best_with(others):
        """The best shape to add to others, and all positions with it."""
        least = positions[others].min(axis=0, initial=np.inf)
        totals = np.minimum(positions, least) @ counts
        return int(totals.argmin()), totals.min()

    chosen = [len(positions) - 1]
    total = positions[-1] @ counts
    while total > enough and len(chosen) < max_shapes:
        added, less = best_with(chosen)
        if less >= total:
            break
        chosen, total = [*chosen, added], less
        for _ in range(_ROUNDS):
            before = total
            for place in range(len(chosen)):
                others = chosen[:place] + chosen[place + 1 :]
                exchanged, less = best_with(others)
                if less < total:
                    chosen[place], total = exchanged, less
            if total == before:
                break
    return chosen
