"""Pairs of strings to batches of ids."""

import functools
import logging
from collections import Counter
from typing import Literal

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.batch_shapes import (
    BatchShapes,
    padded_lengths,
    shapes_wanted,
    whole_rows,
    with_shapes,
)
from kseq.data.files.data_error import DataError
from kseq.data.files.dataset_options import (
    IN_PARALLEL,
    disable_autotuning,
    split_over_devices,
)
from kseq.data.text.parallel_text import are_usable
from kseq.data.text.teacher_forcing import teacher_forcing
from kseq.data.text.text_preprocessor import TextPreprocessor
from kseq.data.text.tokenizer import Tokenizer
from kseq.terminal import progress

_BLOCK = 64  # neighbours that are read, tokenized and shuffled together
_MIXED = 8192  # single pairs, shuffled after the blocks
_SAMPLE = 100  # blocks that show how many pairs are too long
# Blocks that are all measured to choose shapes; of the same number after them
# every second one, of twice this number then every fourth one, and so on.
_MEASURED = 1024
_ENDLESS = 2**13  # blocks of endless pairs that are read for that

_KEY_BASE = 2**31

_log = logging.getLogger(__name__)


def training_batches(
    pairs: tf.data.Dataset,
    preprocessor: TextPreprocessor,
    target_tokenizer: Tokenizer,
    *,
    batch_tokens: int,
    max_length: int,
    seed: int,
    shuffle_buffer: int = 200_000,
    max_shapes: int | Literal["auto"] | None = "auto",
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds pairs of similar lengths, padded on each side to a multiple
    of 4, above 32 of 8, above 64 of 16, and so on; with `max_shapes`, to one
    of a few shapes, each with its number of rows. The iterator can be saved
    in a `tf.train.Checkpoint`.

    Args:
        pairs: scalar strings (source, target); they may be endless.
        preprocessor: `TextPreprocessor`, makes `source_ids`, uncut; or
            `StoredFeatures`, whose sources are their numbers.
        target_tokenizer: makes `target_ids` and labels.
        batch_tokens: maximum number of tokens, or cells of pictures, on either
            side of a batch, padding included, unless a single pair has more.
        max_length: pairs with more tokens on a side, END included, are left
            out, as are pairs with a blank side.
        seed: of the shuffling, which differs in every epoch.
        shuffle_buffer: number of pairs to shuffle, held in memory and in
            checkpoints; a smaller text is shuffled as a whole.
        max_shapes: maximum number of different (source, target) lengths of
            batches, chosen to minimize padding; None for any number. "auto" is
            16 if there is a GPU, for which XLA compiles each of them, otherwise
            None. Only some pairs of a large corpus are measured: longer pairs
            add lengths.

    Returns:
        Data set of `({"source_ids", "target_ids"}, labels, sample_weight)`,
        int32 (B, S), (B, T) and (B, T), and float32 (B, T). With features
        `source` (B, S, F) float32 and `source_mask` (B, S) bool are in place
        of `source_ids`. With `max_shapes`, its attribute `shapes` has an
        `element_spec` of known dimensions for each shape.

    Raises:
        ArgumentError: `max_shapes` is invalid.
        DataError: no pair can be trained on.

    Example:
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> tokenizer = Tokenizer.train(lines, 270, "bpe")
    >>> pairs = tf.data.Dataset.from_tensor_slices((lines, lines))
    >>> batches = training_batches(
    ...     pairs, TextPreprocessor(tokenizer), tokenizer,
    ...     batch_tokens=64, max_length=32, seed=1,
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["target_ids"].shape == labels.shape
    True
    """
    most = shapes_wanted(max_shapes)
    both = (preprocessor, target_tokenizer, max_length)
    tokenize = _tokenization(*both)
    blocks = pairs.batch(_BLOCK).map(_only_text, **IN_PARALLEL)
    with progress("Checking the lengths of the pairs"):
        _check_lengths(blocks, tokenize, max_length)
    shapes = None
    if most is not None:
        with progress("Choosing the shapes of the batches"):
            measure = _tokenization(*both, pad=tf.identity)
            shapes = _chosen_shapes(blocks, measure, most)
        shapes.log()
        tokenize = _tokenization(*both, pad=shapes)
    blocks = blocks.shuffle(1 + shuffle_buffer // _BLOCK, seed=seed)
    examples = _examples(blocks, tokenize).shuffle(_MIXED, seed=seed)
    # The lengths of features, or of turns on their axis, have no limit.
    is_text = not hasattr(preprocessor, "look_up")
    limits = [max_length if is_text else _KEY_BASE, max_length]
    batches = _batched(examples.repeat(), batch_tokens, limits, shapes)
    batches = split_over_devices(_with_features(batches, preprocessor, shapes))
    if shapes is None:
        return batches
    empty = _empty_batches(shapes, batch_tokens, preprocessor)
    return with_shapes(batches, empty)


def evaluation_batches(
    pairs: tf.data.Dataset,
    preprocessor: TextPreprocessor,
    target_tokenizer: Tokenizer,
    *,
    batch_tokens: int = 4096,
) -> tf.data.Dataset:
    """All pairs once, whatever their length, in batches of similar lengths.

    Arguments and batches are those of `training_batches`, except for the
    padding: a batch is as long as its longest pair.
    """
    tokenize = _tokenization(preprocessor, target_tokenizer)
    batches = _batched(_examples(pairs.batch(_BLOCK), tokenize), batch_tokens)
    batches = split_over_devices(_with_features(batches, preprocessor))
    # Counted; otherwise Keras warns that the input ran out of data.
    with progress("Counting the batches of validation"):
        count = batches.reduce(
            tf.constant(0, tf.int64), lambda count, batch: count + 1
        )
    return batches.apply(tf.data.experimental.assert_cardinality(count))


def _only_text(source, target):
    """Leaves out pairs with a blank side, or a line that is too long."""
    good = are_usable(source, target)
    return source[good], target[good]


def _tokenization(
    preprocessor, target_tokenizer, max_length=None, pad=padded_lengths
):
    """A function from blocks of strings to blocks of keys and ids.

    A key has the lengths of source and target, padded by a function of (B, 2).
    """

    def tokenize(source, target):
        source = preprocessor.tokenize(source)
        target, _ = target_tokenizer.tokenize_with_end(target)
        if max_length is not None:
            lengths = tf.maximum(source.row_lengths(), target.row_lengths())
            good = tf.where(lengths <= max_length)[:, 0]
            source, target = tf.gather(source, good), tf.gather(target, good)
        lengths = [preprocessor.lengths(source), target.row_lengths()]
        padded = pad(tf.stack(lengths, axis=1))
        return _KEY_BASE * padded[:, 0] + padded[:, 1], source, target

    return tokenize


def _check_lengths(blocks, tokenize, max_length):
    sample = blocks.take(_SAMPLE)
    read, kept = _count(sample), _count_kept(sample, tokenize)
    is_endless = blocks.cardinality() == tf.data.INFINITE_CARDINALITY
    if not kept and (is_endless or not _count_kept(blocks, tokenize)):
        raise DataError(
            "There is no pair to train on: each has a side that is blank or "
            f"longer than {max_length=} tokens."
        )
    if kept < read:
        _log.warning(
            f"{read - kept} of the first {read} pairs are left out of "
            f"training: a side has more than {max_length=} tokens."
        )


def _count_kept(blocks, tokenize):
    return _count(blocks.map(tokenize, **IN_PARALLEL))


def _examples(blocks, tokenize):
    """Blocks of strings -> single (key, source (S,), target (T,)) ids."""
    return blocks.map(tokenize, **IN_PARALLEL).unbatch()


def _count(blocks):
    return int(blocks.reduce(0, lambda count, block: count + tf.size(block[0])))


def _chosen_shapes(blocks, measure, max_shapes):
    """`BatchShapes` for pairs, of which some are measured."""

    def stride(number):
        """1; 2 from the block `_MEASURED` on, 4 from twice this number on."""
        starts = tf.constant([_MEASURED * 2**power for power in range(30)])
        doublings = tf.math.count_nonzero(number >= tf.cast(starts, tf.int64))
        return tf.bitwise.left_shift(tf.constant(1, tf.int64), doublings)

    def measured(number, block):
        keys, *_ = measure(*block)
        return stride(number), keys

    if blocks.cardinality() == tf.data.INFINITE_CARDINALITY:
        blocks = blocks.take(_ENDLESS)
    sample = disable_autotuning(blocks).enumerate()
    sample = sample.filter(lambda number, _: number % stride(number) == 0)
    counts = Counter()
    for weight, keys in sample.map(measured, **IN_PARALLEL):
        for key in keys.numpy().tolist():
            counts[key] += int(weight)
    return BatchShapes(
        _lengths(np.array(list(counts))).numpy().T,
        np.array(list(counts.values())),
        max_shapes=max_shapes,
    )


def _batched(examples, batch_tokens, limits=None, shapes=None):
    def rows(key):
        return _rows(_lengths(key), batch_tokens, shapes)

    def batch(key, window):
        lengths = tf.constant([-1, -1], tf.int64)  # those of the longest
        if limits is not None:
            lengths = tf.minimum(_lengths(key), limits)

        def pad(_, source, target):
            return (
                source.to_tensor(shape=tf.stack([-1, lengths[0]])),
                target.to_tensor(shape=tf.stack([-1, lengths[1]])),
            )

        return window.batch(rows(key)).map(pad)

    batches = examples.group_by_window(
        lambda key, *_: key, batch, window_size_func=rows
    )
    return batches.map(_teacher_forced, **IN_PARALLEL).prefetch(2)


def _rows(lengths, batch_tokens, shapes):
    rows = tf.maximum(batch_tokens // tf.reduce_max(lengths), 1)
    return rows if shapes is None else whole_rows(rows)


def _with_features(batches, preprocessor, shapes=None):
    """Looked up last: no buffer, and so no checkpoint, holds features."""
    look_up = _look_up(preprocessor, shapes)
    if look_up is None:
        return batches
    return batches.map(look_up, **IN_PARALLEL)


def _look_up(preprocessor, shapes):
    look_up = getattr(preprocessor, "look_up", None)
    if look_up is None or shapes is None:
        return look_up
    return functools.partial(look_up, whole_width=True)


def _empty_batches(shapes, batch_tokens, preprocessor):
    """A batch of each shape, of padding."""
    look_up = _look_up(preprocessor, shapes)
    for lengths in shapes.lengths:
        rows = _rows(lengths, batch_tokens, shapes)
        source, target = (tf.zeros((rows, n), tf.int32) for n in lengths)
        batch = _teacher_forced(source, target)
        yield batch if look_up is None else look_up(*batch)


def _lengths(key):
    """The padded lengths (2,) in a key."""
    return tf.stack([key // _KEY_BASE, key % _KEY_BASE])


def _teacher_forced(source_ids, labels):
    """Padded ids, both with END, to a batch."""
    inputs = {"source_ids": source_ids, "target_ids": teacher_forcing(labels)}
    return inputs, labels, tf.cast(labels != PAD, tf.float32)
