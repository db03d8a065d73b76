"""Pairs of strings to batches of ids."""

import logging

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.data_error import DataError
from kseq.data.parallel_text import are_usable
from kseq.data.split_over_devices import split_over_devices
from kseq.data.teacher_forcing import teacher_forcing
from kseq.data.text_preprocessor import TextPreprocessor
from kseq.data.tokenizer import Tokenizer
from kseq.data.without_autotuning import IN_PARALLEL
from kseq.progress import progress

_BLOCK = 64  # neighbours that are read, tokenized and shuffled together
_MIXED = 8192  # single pairs, shuffled after the blocks
_SAMPLE = 100  # blocks that show how many pairs are too long

_DOUBLED_AT = [2**power for power in range(5, 31)]
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
) -> tf.data.Dataset:
    """An endless stream of shuffled batches for `model.fit`.

    A batch holds pairs of similar lengths, padded on each side to a multiple
    of 4, above 32 of 8, above 64 of 16, and so on. The iterator can be saved
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
        shuffle_buffer: pairs held in memory, and in checkpoints, to draw
            from; a smaller text is shuffled as a whole.

    Returns:
        Data set of `({"source_ids", "target_ids"}, labels, sample_weight)`,
        int32 (B, S), (B, T) and (B, T), and float32 (B, T). With features
        `source` (B, S, F) float32 and `source_mask` (B, S) bool are in place
        of `source_ids`.

    Raises:
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
    tokenize = _tokenization(preprocessor, target_tokenizer, max_length)
    blocks = pairs.batch(_BLOCK).map(_only_text, **IN_PARALLEL)
    with progress("Checking the lengths of the pairs"):
        _check_lengths(blocks, tokenize, max_length)
    blocks = blocks.shuffle(1 + shuffle_buffer // _BLOCK, seed=seed)
    examples = _examples(blocks, tokenize).shuffle(_MIXED, seed=seed)
    batches = _batched(examples.repeat(), batch_tokens, max_length)
    return split_over_devices(_with_features(batches, preprocessor))


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
    # Counted, or Keras warns of an input that runs out.
    with progress("Counting the batches of validation"):
        count = batches.reduce(
            tf.constant(0, tf.int64), lambda count, batch: count + 1
        )
    return batches.apply(tf.data.experimental.assert_cardinality(count))


def _only_text(source, target):
    """Leaves out pairs with a blank side, or a line that is too long."""
    good = are_usable(source, target)
    return source[good], target[good]


def _tokenization(preprocessor, target_tokenizer, max_length=None):
    """A function from blocks of strings to blocks of keys and ids."""

    def tokenize(source, target):
        source = preprocessor.tokenize(source)
        target, _ = target_tokenizer.tokenize_with_end(target)
        if max_length is not None:
            lengths = tf.maximum(source.row_lengths(), target.row_lengths())
            good = tf.where(lengths <= max_length)[:, 0]
            source, target = tf.gather(source, good), tf.gather(target, good)
        return _keys(preprocessor.lengths(source), target), source, target

    return tokenize


def _check_lengths(blocks, tokenize, max_length):
    sample = blocks.take(_SAMPLE)
    read, kept = _count(sample), _count_kept(sample, tokenize)
    is_endless = blocks.cardinality() == tf.data.INFINITE_CARDINALITY
    if not kept and (is_endless or not _count_kept(blocks, tokenize)):
        raise DataError(
            "There is no pair to train on: in each, a side is blank or longer "
            f"than {max_length=} tokens."
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


def _batched(examples, batch_tokens, max_length=None):
    def rows(key):
        return tf.maximum(batch_tokens // tf.reduce_max(_lengths(key)), 1)

    def batch(key, window):
        lengths = tf.constant([-1, -1], tf.int64)  # those of the longest
        if max_length is not None:
            lengths = tf.minimum(_lengths(key), max_length)

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


def _with_features(batches, preprocessor):
    """Looked up last: no buffer, and so no checkpoint, holds features."""
    look_up = getattr(preprocessor, "look_up", None)
    if look_up is None:
        return batches
    return batches.map(look_up, **IN_PARALLEL)


def _keys(source_lengths, target):
    """One number for both padded lengths of each pair, (B,)."""
    return _KEY_BASE * _padded(source_lengths) + _padded(target.row_lengths())


def _lengths(key):
    """The padded lengths (2,) in a key."""
    return tf.stack([key // _KEY_BASE, key % _KEY_BASE])


def _padded(lengths):
    """The next multiples of 4, above 32 of 8, above 64 of 16, and so on."""
    doublings = tf.math.count_nonzero(
        lengths[:, None] > tf.constant(_DOUBLED_AT, tf.int64), axis=1
    )
    steps = tf.bitwise.left_shift(tf.constant(4, tf.int64), doublings)
    return (lengths + steps - 1) // steps * steps


def _teacher_forced(source_ids, labels):
    """Padded ids, both with END, to a batch."""
    inputs = {"source_ids": source_ids, "target_ids": teacher_forcing(labels)}
    return inputs, labels, tf.cast(labels != PAD, tf.float32)
