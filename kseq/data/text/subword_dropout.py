"""Splits pieces of texts at random: subword regularization."""

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.dataset_options import without_autograph
from kseq.data.files.ragged_array import RaggedArray

_BLOCK = 2048  # texts that are split together, to find their lengths
# SplitMix64, see Steele et al. 2014, Fast Splittable Pseudorandom Number
# Generators.
_STEP = 0x9E3779B97F4A7C15
_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


class SubwordDropout:
    """Texts whose pieces are split at random, differently in each epoch.

    A piece is split with probability `rate` into the two pieces that it is made
    of, and so is each of these. With BPE they are those of its last merge; with
    unigram, those of the highest probability. The text stays the same.

    This is the part of BPE dropout that needs ids alone: merges are undone from
    the last on, and letters do not merge in another way, such as across the
    borders of pieces. A rate of 0.3 makes texts as long as BPE dropout of 0.1.

    What is drawn depends on the seed, the epoch, the number of the text and the
    position in it, and on nothing else in a batch.

    Args:
        ids: `RaggedArray`, of texts.
        halves: (V, 2) int, see `piece_halves`.
        rate: float, from 0 to below 1.
        seed: int.
        longest: int; a text with more pieces than that after the splits is
            read without them. The attribute may be set until texts are read.

    Call arguments of the methods:
        numbers: (B,) int64, each `epoch * len(ids) + number of the text`.

    Example:
    >>> halves = np.array([[0, 0]] * 6 + [[4, 5]])
    >>> ids = RaggedArray(np.array([6, 6, 3]), np.array([0, 3]))
    >>> texts = SubwordDropout(ids, halves, rate=0.5, seed=1, longest=9)
    >>> texts.padded(tf.range(3, dtype=tf.int64), 5).numpy()
    array([[4, 5, 4, 5, 3],
           [6, 6, 3, 0, 0],
           [4, 5, 6, 3, 0]], dtype=int32)

    Reference:
        Kudo 2018, arXiv:1804.10959; Provilkov et al. 2020, arXiv:1910.13267;
        Sims et al. 2025, arXiv:2506.01687, which splits pieces of any kind.
    """

    def __init__(
        self,
        ids: RaggedArray,
        halves: np.ndarray,
        *,
        rate: float,
        seed: int,
        longest: int,
    ):
        self.longest = longest
        self._ids = ids
        with tf.device("CPU:0"):  # where data sets read it
            self._halves = tf.constant(halves.ravel(), tf.int32)
        self._threshold = int(rate * 2**64)
        self._seed = seed * _STEP % 2**64
        # To trace it takes ten times as long as all else of a pipeline.
        self._split = tf.function(
            self._split_texts,
            input_signature=[
                tf.TensorSpec([None], tf.int64),
                tf.TensorSpec([], tf.int32),
            ],
            autograph=False,
        )

    def lengths(self, numbers) -> tf.Tensor:
        """The lengths of some texts, (B,) int64."""
        count = tf.size(numbers)
        block = tf.clip_by_value(count, 1, _BLOCK)
        numbers = tf.pad(numbers, [[0, -count % block]])
        lengths = tf.map_fn(
            without_autograph(lambda x: self._split(x, self.longest)[0]),
            tf.reshape(numbers, [-1, block]),
            parallel_iterations=1,  # for memory
        )
        return tf.reshape(lengths, [-1])[:count]

    def padded(self, numbers, width) -> tf.Tensor:
        """Some texts as (B, width) int32, with PAD after each."""
        _, texts = self._split(numbers, self.longest)
        return texts.to_tensor(PAD, shape=(-1, tf.cast(width, tf.int64)))

    def _split_texts(self, numbers, longest):
        """The lengths of some texts, (B,) int64, and the texts, ragged."""
        texts = self._ids.gather(numbers % len(self._ids))
        texts = texts.with_row_splits_dtype(tf.int32)
        ids = tf.cast(texts.flat_values, tf.int32)
        rows = texts.value_rowids()
        places = tf.range(tf.size(ids))
        places -= tf.gather(texts.row_starts(), rows)
        draws = tf.gather(_mixed(_after(numbers, self._seed)), rows)
        draws = _mixed(_after(places, draws))
        is_split = self._are_split(ids, draws)

        # The parts of all pieces that are split, in order.
        wholes = tf.boolean_mask(tf.range(tf.size(ids)), is_split)
        parts, wholes = self._parts(
            *(tf.gather(x, wholes) for x in (ids, draws)), wholes
        )
        counts = tf.math.unsorted_segment_sum(
            tf.ones_like(wholes), wholes, tf.size(ids)
        )
        counts = tf.where(is_split, counts, 1)

        is_long = tf.math.segment_sum(counts, rows) > longest
        is_split &= ~tf.gather(is_long, rows)
        counts = tf.where(is_split, counts, 1)
        is_part = tf.gather(is_split, wholes)
        parts, wholes = parts[is_part], wholes[is_part]

        before = tf.cumsum(tf.cast(~is_split, tf.int32), exclusive=True)
        others = tf.cumsum(counts, exclusive=True)[~is_split]
        parts_at = tf.range(tf.size(parts)) + tf.gather(before, wholes)
        flat = tf.dynamic_stitch([others, parts_at], [ids[~is_split], parts])
        lengths = tf.math.segment_sum(counts, rows)
        lengths = tf.cast(lengths, tf.int64)
        return lengths, tf.RaggedTensor.from_row_lengths(
            flat, lengths, validate=False
        )

    def _parts(self, pieces, draws, wholes):
        """Splits pieces.

        Args:
            pieces: (N,) int32, all of which are split at least once.
            draws: (N,) uint64, of them.
            wholes: (N,) int32, anything about each.

        Returns:
            What becomes of them, (M,) int32, in order, and `wholes` (M,).
        """

        def halve(pieces, draws, wholes, is_split):
            times = tf.where(is_split, 2, 1)
            parents = tf.repeat(tf.range(tf.size(times)), times)
            first = tf.gather(tf.cumsum(times, exclusive=True), parents)
            half = tf.range(tf.size(parents)) - first  # 0 or 1
            pieces, draws, wholes, was_split = (
                tf.gather(x, parents) for x in (pieces, draws, wholes, is_split)
            )
            halves = tf.gather(self._halves, 2 * pieces + half)
            pieces = tf.where(was_split, halves, pieces)
            draws = _mixed(_after(half, draws))
            is_split = was_split & self._are_split(pieces, draws)
            return pieces, draws, wholes, is_split

        parts, _, wholes, _ = tf.while_loop(
            lambda *state: tf.reduce_any(state[-1]),
            halve,
            (pieces, draws, wholes, tf.ones_like(pieces, tf.bool)),
            shape_invariants=(tf.TensorShape([None]),) * 4,
        )
        return parts, wholes

    def _are_split(self, pieces, draws):
        has_halves = tf.gather(self._halves, 2 * pieces) > 0
        return has_halves & (draws < tf.constant(self._threshold, tf.uint64))


def _after(numbers, state):
    """The state of a random number generator some steps later."""
    steps = tf.cast(numbers, tf.uint64) + tf.constant(1, tf.uint64)
    return state + steps * tf.constant(_STEP, tf.uint64)


def _mixed(state):
    """Random numbers of states, (N,) uint64."""
    for shift, factor in _FACTORS:
        shift = tf.constant(shift, tf.uint64)
        state ^= tf.bitwise.right_shift(state, shift)
        state *= tf.constant(factor, tf.uint64)
    shift = tf.constant(31, tf.uint64)
    return state ^ tf.bitwise.right_shift(state, shift)
