"""Texts with noise, from which a model restores them."""

import math

import numpy as np
import tensorflow as tf

from kseq.control_tokens import END, PAD, UNK
from kseq.data.files.batch_shapes import MAX_SHAPES
from kseq.data.files.data_error import DataError
from kseq.data.files.index_shuffle import index_shuffle
from kseq.data.files.shuffled_batches import (
    Sizes,
    count_lengths,
    shuffled_batches,
)
from kseq.data.text.batches import teacher_forced
from kseq.data.text.tokenized_pairs import TokenizedPairs
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import check_integers, check_seed

MASKED = 0.3  # of the pieces, by spans
_SPANS = np.arange(1, 11)  # pieces
# A Poisson distribution with mean 3, without spans of nothing.
_SPAN_SHARES = np.array([3.0**n / math.factorial(n) for n in _SPANS])
_SPAN_SHARES /= _SPAN_SHARES.sum()
# Draws of noise for each text, each of them an example of its own.
_DRAWS = 2**20
_STOPS = tuple(stop.encode() for stop in ".!?…。\uff01\uff1f।؟")


def denoising_batches(
    pairs: TokenizedPairs,
    tokenizer: Tokenizer,
    *,
    batch_tokens: int,
    max_length: int,
    seed: int,
    max_shapes: int = MAX_SHAPES,
) -> tf.data.Dataset:
    """An endless stream of batches for restoring corrupted texts, as in BART.

    The texts are all sources and all targets. Their sentences are shuffled, and
    spans with 30 % of all pieces are replaced by one UNK each. The noise of a
    text is different each time it is read, and depends on nothing else in its
    batch.

    Args:
        pairs: of `tokenize_pairs`, with one tokenizer for source and target.
        tokenizer: this one.
        batch_tokens: see `training_batches`.
        max_length: texts with more pieces, END included, are left out.
        seed: of order and noise.
        max_shapes: see `training_batches`.

    Returns:
        Data set of the same batches as that of `training_batches`: the labels
        are the texts, `source_ids` the noisy ones.

    Raises:
        ArgumentError: an argument is out of range.
        DataError: there is no text to learn from, or source and target have
            two tokenizers.

    Example:
    >>> from kseq.data import TextPreprocessor, tokenize_pairs
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> tokenizer = Tokenizer.train(lines, 270, "bpe")
    >>> pairs = tf.data.Dataset.from_tensor_slices((lines, lines))
    >>> pairs = tokenize_pairs(pairs, TextPreprocessor(tokenizer), tokenizer)
    >>> batches = denoising_batches(
    ...     pairs, tokenizer, batch_tokens=64, max_length=32, seed=1
    ... )
    >>> inputs, labels, weights = next(iter(batches))
    >>> inputs["source_ids"].shape == labels.shape
    True

    Reference:
        Lewis et al. 2019, arXiv:1910.13461, section 2.2. Spans have at least
        one piece and at most ten.
    """
    check_integers(batch_tokens=batch_tokens, max_length=max_length)
    check_seed(seed)
    if pairs.preprocessor.tokenizer.model != tokenizer.model:
        raise DataError(
            "Only a model with one vocabulary of source and target can be "
            "pretrained: use one type of --pieces, or --pretraining-steps 0."
        )
    count = sum(pairs.counts)
    stops = tf.constant(
        [piece.endswith(_STOPS) for piece in tokenizer.surfaces()]
    )

    def side(numbers, read):
        """What is read of the source, or else of the target."""
        number = numbers % count
        source, target = read(pairs.source, number), read(pairs.target, number)
        is_source = numbers % (2 * count) < count
        is_source = tf.reshape(is_source, [-1] + [1] * (source.shape.rank - 1))
        return tf.where(is_source, source, target)

    def sizes(numbers):
        lengths = side(numbers, lambda texts, number: texts.lengths(number))
        lengths = tf.where(lengths <= max_length, lengths, 0)
        return Sizes(lengths, tf.stack([lengths, lengths], axis=1))

    def batch(numbers, lengths):
        ids = side(numbers, lambda texts, each: texts.padded(each, lengths[0]))
        starts, spans, keys = (
            _random_numbers(numbers, count, seed, purpose, lengths[0])
            for purpose in range(3)
        )
        noisy = infill(shuffle_sentences(ids, stops, keys), starts, spans)
        return teacher_forced(noisy, ids)

    all_sizes = _text_lengths(pairs, max_length)
    if not len(all_sizes[0]):
        raise DataError(
            "There is no text to learn from: each is blank or longer than "
            f"{max_length=} pieces."
        )
    return shuffled_batches(
        *((2 * count * _DRAWS,), sizes, batch),
        all_sizes=all_sizes,
        budget=batch_tokens,
        seed=seed,
        max_shapes=max_shapes,
        of_pairs=True,
    )


def infill(ids: tf.Tensor, starts: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
    """Replaces random spans of texts by one UNK each.

    Args:
        ids: (B, T) int32, with END, padded with PAD.
        starts: (B, T) float32 from 0 to below 1, random; a span starts where
            it is low.
        spans: (B, T) float32, the same, which decides the length of a span.

    Returns:
        (B, T) int32. END stays the last piece.
    """
    # Spans may overlap, and leave this share of the pieces.
    rate = -math.log1p(-MASKED) / (_SPAN_SHARES @ _SPANS)
    is_start = starts < rate
    limits = tf.constant(np.cumsum(_SPAN_SHARES)[:-1], tf.float32)
    lengths = 1 + tf.searchsorted(limits, tf.reshape(spans, [-1]))
    lengths = tf.where(is_start, tf.reshape(lengths, tf.shape(ids)), 0)
    is_masked = tf.zeros_like(is_start)
    for before in range(len(_SPANS)):
        is_masked |= _shifted(lengths, before) > before
    is_masked &= (ids != PAD) & (ids != END)
    follows = _shifted(tf.cast(is_masked, tf.int32), 1) > 0
    is_kept = (ids != PAD) & ~(is_masked & follows)
    ids = tf.where(is_masked, UNK, ids)
    kept = tf.ragged.boolean_mask(ids, is_kept)
    return kept.to_tensor(PAD, shape=tf.shape(ids))


def shuffle_sentences(
    ids: tf.Tensor, stops: tf.Tensor, random: tf.Tensor
) -> tf.Tensor:
    """Reorders the sentences of texts.

    Args:
        ids: (B, T) int32, with END, padded with PAD.
        stops: (V,) bool, the pieces after which a sentence ends.
        random: (B, T) float32 from 0 to below 1, the keys of sentences.

    Returns:
        (B, T) int32. END stays the last piece.
    """
    is_stop = tf.cast(tf.gather(stops, ids), tf.int32)
    sentences = tf.cumsum(is_stop, axis=1, exclusive=True)
    keys = tf.gather(random, sentences, axis=1, batch_dims=1)
    keys = tf.where((ids == PAD) | (ids == END), 2.0, keys)
    order = tf.argsort(keys, axis=1, stable=True)
    return tf.gather(ids, order, axis=1, batch_dims=1)


def _shifted(values, places):
    """Moved to the right, with zeros before them."""
    width = tf.shape(values)[1]
    return tf.pad(values, [[0, 0], [places, 0]])[:, :width]


def _random_numbers(numbers, count, seed, purpose, width):
    """Random numbers of each example, which no other changes: (B, width)."""
    width = tf.cast(width, tf.int64)
    draw, text = numbers // (2 * count), numbers % (2 * count)
    keys = tf.stack([draw, text % 2**31, 0 * text + seed % 2**31], axis=1)
    rows = tf.size(numbers, tf.int64)
    places = tf.tile(tf.range(width) + purpose * 2**28, rows[None])
    # Where numbers of 0 to 2^30 - 1 go in a random permutation.
    bits = index_shuffle(places, 2**30, tf.repeat(keys, width, axis=0))
    bits = tf.reshape(bits // 2**6, [rows, width])  # float32 holds 24
    return tf.cast(bits, tf.float32) / 2**24


def _text_lengths(pairs, max_length):
    """Of sources and targets; see `count_lengths`."""
    blocks = (
        np.where(block <= max_length, block, 0)
        for texts in (pairs.source, pairs.target)
        for block in texts.blocks_of_lengths()
    )
    return count_lengths(
        (np.stack([each] * 2, axis=1), each) for each in blocks
    )
