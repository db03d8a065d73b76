"""An endless stream of shuffled batches whose position is one integer."""

import functools
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.batch_shapes import (
    BatchShapes,
    shapes_wanted,
    whole_rows,
    with_shapes,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.dataset_options import without_autograph
from kseq.data.files.device_parts import read_in_parts
from kseq.data.files.index_shuffle import index_shuffle
from kseq.data.files.ragged_array import RaggedArray
from kseq.data.files.stream_positions import with_positions
from kseq.terminal import progress
from kseq.user_error import check_seed

# Examples of which batches of similar lengths are made together.
WINDOW = 200_000
_POOL = 8  # batches at most, whose examples have similar costs
_RATIOS = 1.1, 1.4  # of the largest of these costs to the smallest
_MEASURED = 2**16  # examples whose sizes are read together


class Sizes(NamedTuple):
    """How large examples are.

    Args:
        costs: (B,) int64: an example takes this part of the budget of a batch.
        lengths: (B, D) int64, on each axis that is padded; 0 for an example
            that is left out.
    """

    costs: tf.Tensor
    lengths: tf.Tensor


def shuffled_batches(
    counts: tuple[int, ...],
    sizes: Callable,
    batch: Callable,
    *,
    budget: int,
    seed: int,
    weights: tuple[float, ...] = (),
    all_sizes: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    max_shapes: int | Literal["auto"] | None = None,
    of_pairs: bool = False,
    with_epochs: bool = False,
) -> tf.data.Dataset:
    """An endless stream of shuffled batches of examples of similar sizes.

    The order is a random permutation of all examples, a different one in each
    epoch, which is computed and not stored. It is cut into windows of at most
    200,000 examples; those of a window are sorted by size and cut into
    batches, which follow each other in random order. A position is the number
    of examples that were read. It is found at once, on any number of devices
    and with any batch size.

    Each machine of a cluster finds all batches by the sizes of all examples,
    and reads only the examples of its own devices.

    Args:
        counts: number of examples of each corpus, which are numbered from 0,
            one corpus after the other.
        sizes: function of the numbers of examples, (B,) int64, that returns
            their `Sizes`.
        batch: function of the numbers of examples, (B,) int64, and of the
            lengths to which they are padded, (D,) int64. It returns
            `(inputs, labels, sample_weight)`.
        budget: a batch has as many examples as fit if each has the cost of the
            largest; at least one.
        seed: of the order.
        weights: how often each corpus is drawn; by default each example is
            read once an epoch.
        all_sizes: the different lengths (K, D) of all examples that are used,
            their counts (K,) and their costs (K,), if they are known.
        max_shapes: see `training_batches`.
        of_pairs: whether the axes are those of two sides, which are padded
            separately, and the cost is the longer one; otherwise of a grid.
        with_epochs: whether an example is a different one in each epoch: its
            number is `epoch * sum(counts)` larger then.

    Returns:
        Data set of batches, see `with_positions`. With `max_shapes` it has an
        attribute `shapes`, see `training_batches`.

    Raises:
        ArgumentError: the seed is no integer.
        DataError: no example can be trained on.
    """
    check_seed(seed)
    if all_sizes is None:
        all_sizes = _all_sizes(sum(counts), sizes)
    most = shapes_wanted(max_shapes)
    shapes = None
    if most is not None:
        shapes = _Shapes(all_sizes, budget, most, of_pairs)
    order = _Order(counts, weights, seed, with_epochs)
    planner = _Planner(order, sizes, budget, seed, shapes)

    def read(rows, lengths):
        numbers, is_new = rows
        inputs, labels, weight = batch(numbers, lengths)
        if shapes is None:
            return inputs, labels, weight
        is_new = tf.cast(is_new, weight.dtype)
        is_new = tf.reshape(is_new, [-1] + [1] * (weight.shape.rank - 1))
        return inputs, labels, weight * is_new

    def starting_at(position):
        window, rest = divmod(position, order.window)
        rows = (
            tf.data.Dataset.counter(window)
            .map(without_autograph(planner))
            .prefetch(1)
            .flat_map(without_autograph(lambda p: p.batches(window, rest)))
        )
        return read_in_parts(rows, read)

    batches = with_positions(starting_at, planner.position_after)
    if shapes is None:
        return batches
    return with_shapes(batches, shapes.examples(batch))


class _Order:
    """The endless order of examples, computed window by window.

    Attributes:
        window: int, examples of a window.
    """

    def __init__(self, counts, weights, seed, with_epochs):
        total = sum(counts)
        self._epoch = total if with_epochs else 0
        if not weights:
            counts, weights = (total,), (1.0,)
        # As many windows of the same size as an epoch needs.
        size = -(-total // -(-total // WINDOW))
        shares = np.array(weights) / sum(weights)
        # Each corpus has its share of each window, and at least one example.
        taken = np.maximum(np.rint(shares * size).astype(int), 1)
        taken *= np.array(counts) > 0
        self.window = int(taken.sum())
        self._parts = list(zip(counts, taken.tolist(), strict=True))
        self._seed = seed % 2**31

    def __call__(self, window):
        """The numbers of the examples of a window, (N,) int64."""
        numbers, first = [], 0
        for part, (count, taken) in enumerate(self._parts):
            position = window * taken + tf.range(taken, dtype=tf.int64)
            epoch = position // count
            keys = self._seed + 0 * epoch, epoch % 2**31, part + 0 * epoch
            keys = tf.stack(keys, axis=1)
            shuffled = index_shuffle(position % count, count, keys)
            numbers.append(first + shuffled + epoch * self._epoch)
            first += count
        return tf.concat(numbers, axis=0)


class _Plan(NamedTuple):
    """The batches of a window.

    Args:
        window: () int64.
        numbers: (N,) int64, of the examples.
        starts: (K,) int64: of each batch, its first example in `numbers`.
        rows: (K,) int64, its examples.
        full: (K,) int64, its examples, with those that are repeated without
            weight to fill its shape.
        lengths: (K, D) int64, to which its examples are padded.
    """

    window: tf.Tensor
    numbers: tf.Tensor
    starts: tf.Tensor
    rows: tf.Tensor
    full: tf.Tensor
    lengths: tf.Tensor

    def batches(self, window, read):
        """A data set of the batches, in a window only those not yet read.

        Args:
            window: int.
            read: int, the examples that were read in this window.

        Returns:
            Data set of numbers (B,) int64 and whether they are not repeated
            (B,) bool; and of the lengths (D,) int64.
        """
        is_read = tf.cumsum(self.rows) <= read
        first = tf.math.count_nonzero(is_read & (self.window == window))

        def batch(place):
            row = tf.range(self.full[place])
            numbers = self.starts[place] + row % self.rows[place]
            is_new = row < self.rows[place]
            rows = tf.gather(self.numbers, numbers), is_new
            return rows, self.lengths[place]

        return tf.data.Dataset.range(first, tf.size(self.rows, tf.int64)).map(
            without_autograph(batch)
        )


class _Planner:
    """Cuts the windows of an order into batches.

    Call arguments:
        window: () int64, the number of a window.

    Returns:
        Its `_Plan`.
    """

    def __init__(self, order, sizes, budget, seed, shapes):
        self._order = order
        self._sizes = sizes
        self._budget = budget
        self._seed = seed % 2**31
        self._shapes = shapes
        # A partial, for TensorFlow counts the tracings of functions that share
        # their code together, and warns of many.
        self._plan_ends = tf.function(
            functools.partial(self._ends_of),
            input_signature=[tf.TensorSpec((), tf.int64)],
            autograph=False,
        )
        # A window is often asked for again, by the next checkpoint.
        self._ends = functools.lru_cache(maxsize=1)(self._find_ends)

    def __call__(self, window):
        numbers = self._order(window)
        costs, lengths = self._sizes(numbers)
        used = tf.where(tf.reduce_all(lengths > 0, axis=1))[:, 0]
        parts = (tf.gather(part, used) for part in (numbers, costs, lengths))
        if self._shapes is None:
            numbers, starts, rows, lengths = self._by_cost(window, *parts)
            full = rows
        else:
            numbers, starts, rows, shapes = self._shapes.cut(*parts)
            full = tf.gather(self._shapes.rows, shapes)
            lengths = tf.gather(self._shapes.lengths, shapes)
        count = tf.size(starts, tf.int64)
        key = self._seed, window % 2**31, -1  # no corpus has this number
        order = index_shuffle(tf.range(count), count, key)
        each = (tf.gather(x, order) for x in (starts, rows, full, lengths))
        return _Plan(window, numbers, *each)

    def position_after(self, position, batches):
        """The position after some more batches."""
        window, read = divmod(position, self._order.window)
        while batches:
            ends = self._ends(window)
            first = np.searchsorted(ends, read, side="right")
            if batches <= len(ends) - first:
                read = int(ends[first + batches - 1])
                return window * self._order.window + read
            batches -= len(ends) - first
            window, read = window + 1, 0
        return position

    def _ends_of(self, window):
        return tf.cumsum(self(window).rows)

    def _find_ends(self, window):
        with tf.device("CPU:0"):
            return self._plan_ends(window).numpy()

    def _by_cost(self, window, numbers, costs, lengths):
        """Examples in the order of batches; of each, start, rows and lengths.

        Examples of similar costs, those of a few batches, are sorted by how
        their lengths differ: from wide to tall.
        """
        order = tf.argsort(costs, direction="DESCENDING", stable=True)
        costs = tf.gather(costs, order)
        most = tf.maximum(self._budget // costs, 1)
        pools = self._pools(window, costs, most)
        sizes = tf.concat([pools[1:], [tf.size(order, tf.int64)]], 0) - pools
        pool, _ = _numbered(sizes)
        shape = tf.gather(lengths[:, 0] - lengths[:, -1], order)
        # Sorting in descending order is the faster one, as no key is changed.
        keys = -(pool * 2**32 + shape)
        places = tf.argsort(keys, direction="DESCENDING", stable=True)
        order = tf.gather(order, places)

        count = -(-sizes // tf.gather(most, pools))  # batches of each pool
        pool, number = _numbered(count)
        size, count = tf.gather(sizes, pool), tf.gather(count, pool)
        starts = number * size // count
        rows = (number + 1) * size // count - starts
        starts += tf.gather(pools, pool)
        batch, _ = _numbered(rows)
        longest = tf.math.segment_max(tf.gather(lengths, order), batch)
        return tf.gather(numbers, order), starts, rows, longest

    def _pools(self, window, costs, most):
        """Where sorted examples are divided by their costs, (P,) int64.

        Each part fills one or several batches, and differs from epoch to epoch:
        otherwise examples of a rare cost would always be in the same batch.
        """
        key = tf.cast(tf.stack([self._seed, window % 2**31]), tf.int32)
        ratio = tf.random.stateless_uniform((), key, *_RATIOS)
        count = tf.size(costs, tf.int64)
        costs = tf.cast(costs, tf.float32)

        def add(starts, start):
            similar = tf.searchsorted(
                -costs, [-costs[start] / ratio], side="right", out_type=tf.int64
            )
            batches = (similar[0] - start) // most[start]
            batches = tf.clip_by_value(batches, 1, _POOL)
            starts = tf.concat([starts, [start]], axis=0)
            return starts, start + batches * most[start]

        starts, _ = tf.while_loop(
            lambda starts, start: start < count,
            add,
            (tf.zeros(0, tf.int64), tf.constant(0, tf.int64)),
            shape_invariants=(tf.TensorShape([None]), tf.TensorShape([])),
        )
        return starts


class _Shapes:
    """Cuts windows into batches of a few shapes.

    Attributes:
        lengths: (K, D) int64 tensor.
        rows: (K,) int64 tensor, of a batch of each shape.
    """

    def __init__(self, all_sizes, budget, max_shapes, of_pairs):
        lengths, counts, costs = all_sizes
        size = np.sum if of_pairs else np.prod
        with progress("Choosing the shapes of the batches"):
            chosen = BatchShapes(
                lengths, counts, max_shapes=max_shapes, size=size
            )
        chosen.log()
        self._number_of = chosen.number_of
        self.lengths = tf.constant(chosen.lengths)
        most = chosen.lengths.max(axis=1)
        if not of_pairs:
            most = np.zeros(len(chosen.lengths), np.int64)
            numbers = chosen.number_of(tf.constant(lengths)).numpy()
            np.maximum.at(most, numbers, costs)
        rows = np.maximum(budget // most, 1)
        # If an epoch has few batches, they have similar sizes.
        total = counts.sum()
        rows = -(-total // -(-total // rows))
        self.rows = tf.constant(whole_rows(rows))
        # The next shape into which the examples of each fit, or itself.
        fits = (chosen.lengths[:, None] <= chosen.lengths).all(axis=2)
        fits &= ~np.tri(len(fits), dtype=bool)
        self._larger = [
            int(row.argmax()) if row.any() else number
            for number, row in enumerate(fits)
        ]

    def cut(self, numbers, costs, lengths):
        """Examples in the order of batches; of each, start, rows and shape.

        Examples that do not fill a batch of their shape are padded to a larger
        one. Where there is none, a batch is not full.
        """
        shapes = tf.cast(self._number_of(lengths), tf.int32)
        for number, larger in enumerate(self._larger):
            own = tf.where(shapes == number)[:, 0]
            rows = self.rows[number]
            left = own[tf.size(own, tf.int64) // rows * rows :]
            shapes = tf.tensor_scatter_nd_update(
                shapes, left[:, None], tf.fill(tf.shape(left), larger)
            )
        places = tf.range(tf.size(shapes, tf.int64))
        # Sorts in a fraction of the time of `argsort`.
        parts = tf.dynamic_partition(places, shapes, len(self._larger))
        order = tf.concat(parts, axis=0)
        sizes = tf.stack([tf.size(part, tf.int64) for part in parts])
        count = -(-sizes // self.rows)  # batches of each shape
        shape, number = _numbered(count)
        rows = tf.gather(self.rows, shape)
        before = number * rows
        starts = tf.gather(tf.cumsum(sizes, exclusive=True), shape) + before
        rows = tf.minimum(rows, tf.gather(sizes, shape) - before)
        return tf.gather(numbers, order), starts, rows, shape

    def examples(self, batch):
        """A batch of each shape."""
        for lengths, rows in zip(self.lengths, self.rows, strict=True):
            with tf.device("CPU:0"):  # or all ids would be copied to a GPU
                example = batch(tf.zeros(rows, tf.int64), lengths)
            yield example


def _all_sizes(count, sizes):
    def blocks():
        for start in range(0, count, _MEASURED):
            end = min(start + _MEASURED, count)
            costs, lengths = sizes(tf.range(start, end, dtype=tf.int64))
            yield lengths.numpy(), costs.numpy()

    found = count_lengths(blocks())
    if not len(found[0]):
        raise DataError("There is no example to train on.")
    return found


def count_lengths(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts examples of the same lengths.

    Args:
        blocks: lengths (B, D) and costs (B,) of some examples; those with a
            length of 0 are left out.

    Returns:
        The different lengths (K, D), their counts (K,), and the largest of
        their costs (K,).
    """
    nothing = np.zeros(0, np.int64)
    found = nothing[:, None], nothing, nothing
    for lengths, costs in blocks:
        used = (lengths > 0).all(axis=1)
        block = lengths[used], np.ones(used.sum(), np.int64), costs[used]
        if len(found[0]):
            block = map(np.concatenate, zip(found, block, strict=True))
        found = _counted(*block)
    return found


def _counted(lengths, counts, costs):
    """Each of the lengths once, the sum of its counts, and its largest cost."""
    radix = lengths.max(initial=0) + 1
    keys = lengths @ radix ** np.arange(lengths.shape[1])
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    most = np.zeros(len(first), np.int64)
    np.maximum.at(most, places, costs)
    counts = np.bincount(places, counts, len(first)).astype(np.int64)
    return lengths[first], counts, most


def _numbered(counts):
    """The group of each item, and its number there; items are in groups."""
    group = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    first = tf.gather(tf.cumsum(counts, exclusive=True), group)
    return group, tf.range(tf.size(group, tf.int64)) - first


def sizes_of_pieces(ids: RaggedArray) -> Callable:
    """The function `sizes` of ids (N, L, W).

    The cost of an example is the number of its pieces.
    """

    def sizes(numbers):
        pieces = ids.lengths_inside(numbers)
        lengths = pieces.row_lengths(), tf.reduce_max(pieces, axis=1)
        return Sizes(tf.reduce_sum(pieces, axis=1), tf.stack(lengths, axis=1))

    return sizes


def stored_sizes(lengths: np.ndarray) -> Callable:
    """The function `sizes` of examples whose costs are lengths (N,), int."""
    lengths = tf.constant(lengths, tf.int64)

    def sizes(numbers):
        costs = tf.gather(lengths, numbers)
        return Sizes(costs, costs[:, None])

    return sizes
