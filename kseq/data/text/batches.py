"""Pairs of ids to batches."""

import logging

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.batch_shapes import MAX_SHAPES
from kseq.data.files.data_error import DataError
from kseq.data.files.dataset_options import IN_PARALLEL
from kseq.data.files.device_parts import split_over_devices
from kseq.data.files.shuffled_batches import (
    Sizes,
    count_lengths,
    shuffled_batches,
)
from kseq.data.text.piece_halves import piece_halves
from kseq.data.text.subword_dropout import SubwordDropout
from kseq.data.text.teacher_forcing import teacher_forcing
from kseq.data.text.text_preprocessor import TextPreprocessor
from kseq.data.text.tokenized_pairs import TokenizedPairs, tokenize_pairs
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import (
    BELOW_ONE,
    ArgumentError,
    check_integers,
    check_number,
    check_positive,
    check_seed,
)

_SAMPLE = 2**17  # pairs of which lengths are found to choose shapes

_log = logging.getLogger(__name__)


def training_batches(
    pairs: TokenizedPairs,
    *,
    batch_tokens: int,
    max_length: int,
    seed: int,
    weights: tuple[float, ...] = (),
    max_shapes: int = MAX_SHAPES,
    subword_dropout: float = 0.0,
    with_alignment: bool = False,
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds pairs of similar lengths, padded to one of a few shapes, each
    with its number of rows: XLA compiles a step for each of them. All pairs
    are shuffled, in a different order in each epoch. Training resumes at any
    batch at once: see `kseq.training.fit`.

    Args:
        pairs: of `tokenize_pairs`.
        batch_tokens: maximum number of tokens, or cells of pictures, on either
            side of a batch, padding included, unless a single pair has more.
        max_length: pairs with more tokens on a side, END included, are left
            out.
        seed: of the order.
        weights: how often each corpus of the pairs is drawn, of pairs that are
            not left out; by default each pair is read once an epoch.
        max_shapes: maximum number of different (source, target) lengths of
            batches, chosen to minimize padding.
        subword_dropout: rate at which pieces of both sides, bpe or unigram, are
            split: see `SubwordDropout`. Batches are planned with the lengths
            after that. A side that would have more than `max_length` tokens,
            or more than any in the first epoch, is not split.
        with_alignment: whether inputs have `alignment` (B, T) int32, see
            `TokenizedPairs`.

    Returns:
        Data set of `({"source_ids", "target_ids"}, labels, sample_weight)`,
        int32 (B, S), (B, T) and (B, T), and float32 (B, T). With features
        `source` (B, S, F) float32 and `source_mask` (B, S) bool are in place
        of `source_ids`. Its attribute `shapes` has an `element_spec` of known
        dimensions for each shape. The last batch of an epoch may repeat pairs
        without weight.

    Raises:
        ArgumentError: an argument is out of range.
        DataError: no pair can be trained on, or none of a corpus with a
            weight; its pieces cannot be split, or there is no alignment.

    Example:
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> tokenizer = Tokenizer.train(lines, 270, "bpe")
    >>> pairs = tf.data.Dataset.from_tensor_slices((lines, lines))
    >>> pairs = tokenize_pairs(pairs, TextPreprocessor(tokenizer), tokenizer)
    >>> batches = training_batches(
    ...     pairs, batch_tokens=64, max_length=32, seed=1
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["target_ids"].shape == labels.shape
    True
    """
    check_integers(batch_tokens=batch_tokens, max_length=max_length)
    check_seed(seed)
    check_number("subword_dropout", subword_dropout, 0, BELOW_ONE, "in [0, 1)")
    _check_weights(weights, pairs.counts)
    _check_lengths(pairs, max_length)
    alignment = pairs.alignment if with_alignment else None
    if with_alignment:
        _check_alignment(pairs, subword_dropout)
    preprocessor = pairs.preprocessor
    is_text = not hasattr(preprocessor, "look_up")

    source, target = pairs.source, pairs.target
    all_sizes = None
    if subword_dropout:
        source, target, all_sizes = _split_at_random(
            pairs, subword_dropout, seed, max_length
        )
    elif is_text:
        is_short = pairs.all_lengths[-1] <= max_length
        all_sizes = tuple(part[is_short] for part in pairs.all_lengths)

    def sizes(numbers):
        tokens = source.lengths(numbers)
        lengths = tf.stack([tokens, target.lengths(numbers)], axis=1)
        is_short = tf.reduce_all(lengths <= max_length, axis=1)
        if not is_text:
            # In a batch, features and turns have other lengths than their ids.
            tokens = preprocessor.lengths(source.gather(numbers))
            lengths = tf.stack([tokens, lengths[:, 1]], axis=1)
        lengths = tf.where(is_short[:, None], lengths, 0)
        return Sizes(tf.reduce_max(lengths, axis=1), lengths)

    def batch(numbers, lengths):
        examples = teacher_forced(
            source.padded(numbers, lengths[0]),
            target.padded(numbers, lengths[1]),
        )
        if alignment is not None:
            inputs = examples[0]
            inputs["alignment"] = alignment.padded(numbers, lengths[1])
        if is_text:
            return examples
        return preprocessor.look_up(*examples, whole_width=True)

    return shuffled_batches(
        *(pairs.counts, sizes, batch),
        all_sizes=all_sizes,
        budget=batch_tokens,
        seed=seed,
        weights=_weights_of_all(pairs, weights, max_length),
        max_shapes=max_shapes,
        of_pairs=True,
        with_epochs=bool(subword_dropout),
    )


def evaluation_batches(
    pairs: tf.data.Dataset,
    preprocessor: TextPreprocessor,
    target_tokenizer: Tokenizer,
    *,
    batch_tokens: int = 4096,
) -> tf.data.Dataset:
    """All pairs once, whatever their length, in batches of similar lengths.

    Args:
        pairs: scalar strings (source, target).
        preprocessor: `TextPreprocessor`, makes `source_ids`, uncut; or
            `StoredFeatures`, whose sources are their numbers.
        target_tokenizer: makes `target_ids` and labels.
        batch_tokens: see `training_batches`.

    Returns:
        Data set of the same batches as that of `training_batches`. Each is as
        long as its longest pair.
    """
    check_integers(batch_tokens=batch_tokens)
    both = preprocessor, target_tokenizer
    pairs = tokenize_pairs(pairs, *both, is_evaluation=True)
    numbers = tf.range(len(pairs.target))
    source, target = pairs.source, pairs.target
    lengths = [
        preprocessor.lengths(source.gather(numbers)),
        target.lengths(numbers),
    ]
    longest = np.max(lengths, axis=0)
    order = np.lexsort((*lengths, longest))[::-1]  # the longest first
    limits = [0]
    while limits[-1] < len(order):
        rows = max(batch_tokens // longest[order[limits[-1]]], 1)
        limits.append(min(limits[-1] + rows, len(order)))
    limits = tf.constant(limits)

    def batch(number):
        chosen = tf.constant(order)[limits[number] : limits[number + 1]]
        sides = (
            side.padded(chosen, tf.reduce_max(side.lengths(chosen)))
            for side in (source, target)
        )
        examples = teacher_forced(*sides)
        if hasattr(preprocessor, "look_up"):
            return preprocessor.look_up(*examples)
        return examples

    batches = tf.data.Dataset.range(len(limits) - 1).map(batch, **IN_PARALLEL)
    return split_over_devices(batches.prefetch(2))


def _check_weights(weights, counts):
    """ArgumentError unless there is one for each corpus, or none."""
    if weights and len(weights) != len(counts):
        raise ArgumentError(
            "weights must have one number for each corpus of the pairs, "
            f"{len(counts)}. Received: weights={weights}"
        )
    for weight in weights:
        check_positive(weights=weight)


def _check_lengths(pairs, max_length):
    _, counts, longer = pairs.all_lengths
    count = sum(pairs.counts)
    too_long = counts[longer > max_length].sum()
    if too_long == count:
        raise DataError(
            "There is no pair to train on: each has a side that is blank or "
            f"longer than {max_length=} tokens."
        )
    if too_long:
        _log.warning(
            f"{too_long} of {count} pairs are left out of training: a side has "
            f"more than {max_length=} tokens."
        )


def _weights_of_all(pairs, weights, max_length):
    """Weights of corpora whose pairs, after some are left out, have `weights`.

    Raises:
        DataError: no pair of a corpus is left.
    """
    if not weights:
        return weights
    sides = pairs.source.blocks_of_lengths(), pairs.target.blocks_of_lengths()
    ends = np.cumsum(pairs.counts)
    used, start = np.zeros(len(ends), np.int64), 0
    for lengths in map(np.stack, zip(*sides, strict=True)):
        is_used = ((lengths > 0) & (lengths <= max_length)).all(axis=0)
        places = start + np.flatnonzero(is_used)
        corpora = np.searchsorted(ends, places, side="right")
        used += np.bincount(corpora, minlength=len(ends))
        start += len(is_used)
    if not used.all():
        raise DataError(
            f"Corpus {np.argmin(used) + 1} of {len(used)} has a weight, but no "
            "pair to train on: each has a side that is blank or longer than "
            f"{max_length=} tokens."
        )
    if used.sum() == ends[-1]:
        return weights
    return tuple(weights * np.array(pairs.counts) / used)


def _check_alignment(pairs, subword_dropout):
    if pairs.alignment is None:
        raise DataError(
            "Guided alignment needs word alignments: give `kseq prepare` a "
            "third column, --columns SOURCE TARGET ALIGNMENT."
        )
    if subword_dropout:
        raise ArgumentError(
            "subword_dropout changes pieces, but not their alignment."
        )


def _split_at_random(pairs, rate, seed, max_length):
    """Source and target with subword dropout, and sizes of some pairs."""
    if hasattr(pairs.preprocessor, "look_up") or not pairs.target_tokenizer:
        raise ArgumentError(
            "subword_dropout needs pairs of texts, with both tokenizers."
        )
    sides = []
    for number, (ids, tokenizer) in enumerate(
        (
            (pairs.source, pairs.preprocessor.tokenizer),
            (pairs.target, pairs.target_tokenizer),
        )
    ):
        halves = piece_halves(tokenizer.model, tokenizer.vocab_size)
        options = {"rate": rate, "seed": 2 * seed + number}
        sides.append(SubwordDropout(ids, halves, longest=max_length, **options))

    count = sum(pairs.counts)
    numbers = tf.range(0, count, -(-count // _SAMPLE), tf.int64)
    with tf.device("CPU:0"):
        lengths = np.stack([side.lengths(numbers) for side in sides], axis=1)
    lengths = lengths[lengths.max(axis=1) <= max_length]
    stored, _, longer = pairs.all_lengths
    longest = np.vstack([lengths, stored[longer <= max_length]]).max(axis=0)
    for side, length in zip(sides, longest.tolist(), strict=True):
        side.longest = length
    lengths = np.vstack([lengths, longest])  # no pair is longer than this one
    return *sides, count_lengths([(lengths, lengths.max(axis=1))])


def teacher_forced(source_ids, labels):
    """Padded ids, both with END, to a batch."""
    inputs = {"source_ids": source_ids, "target_ids": teacher_forcing(labels)}
    return inputs, labels, tf.cast(labels != PAD, tf.float32)
