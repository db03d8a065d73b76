"""Phrases that the answer of each item must or must not contain."""

import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.decoding.loops import INTEGER, arange

_LONGEST = 255  # bytes of a forbidden phrase that are compared
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Kana, Han.
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


class Phrases(NamedTuple):
    """What the answer of each item must and must not contain.

    Args:
        required: (B, N, L) int, the tokens of up to N phrases, PAD after those
            of each; a phrase of PAD alone is none. An answer contains them
            as whole words.
        forbidden: (B, M) string, up to M phrases; an empty one is none.
            An answer does not contain them as whole words. Between words of
            scripts without spaces it does not contain them anywhere.
        surfaces: list of bytes, the text that each id adds, see
            `kseq.data.Tokenizer.surfaces`.
    """

    required: Any
    forbidden: Any
    surfaces: Sequence[bytes]


class PhraseMemory(NamedTuple):
    """The phrases of items as a search reads them.

    Args:
        required: (B, N, L) int64.
        beginnings: (B, M, P + 1) string, the first p bytes of each forbidden
            phrase, and an impossible text where it is shorter.
        completing: (B, M * (P + 1), V) float32, 1 for the tokens that
            complete a phrase after this beginning.
    """

    required: tf.Tensor
    beginnings: tf.Tensor
    completing: tf.Tensor


def phrase_memory(required, forbidden, surfaces: Sequence[bytes]):
    """`PhraseMemory` of B items, from what is in their `Phrases`."""
    # A word begins with the space before it.
    texts = tf.strings.substr(tf.strings.strip(forbidden), 0, _LONGEST)
    is_phrase = texts != ""
    is_unspaced = tf.strings.regex_full_match(texts, rf"{_UNSPACED}\C*")
    ends_anywhere = tf.strings.regex_full_match(texts, rf"\C*{_UNSPACED}")
    texts = tf.where(is_unspaced, texts, tf.strings.join([" ", texts]))
    sizes = tf.strings.length(texts)  # (B, M) int32, bytes
    longest = tf.reduce_max(tf.concat([[0], tf.reshape(sizes, [-1])], 0))

    positions = tf.range(longest + 1)
    shape = tf.concat([tf.shape(texts), [longest + 1]], 0)
    flat = tf.reshape(texts, [-1, 1])
    flat_sizes = tf.reshape(sizes, [-1, 1])
    starts = tf.minimum(positions[None], flat_sizes)  # (B * M, P + 1)
    beginnings = tf.strings.substr(flat, tf.zeros_like(starts), starts)
    rest = tf.strings.substr(flat, starts, flat_sizes - starts)

    # A token completes a phrase if it begins with the rest of it, and the
    # word ends there: with a token that follows, if not with this one.
    left = tf.reshape(flat_sizes - starts, [-1])
    lengths = tf.range(_longest_of(surfaces) + 1)[None]
    cut = tf.strings.substr(
        tf.constant(list(surfaces))[:, None], tf.zeros_like(lengths), lengths
    )  # (V, Q + 1)
    fits = left <= _longest_of(surfaces)
    column = tf.where(fits, left, 0)
    same = tf.gather(_hashed(cut), column, axis=1) == _hashed(
        tf.reshape(rest, [-1])
    )  # (V, B * M * (P + 1))
    whole, word_ends = (
        tf.gather(tf.constant(table), column, axis=1)
        for table in _boundaries(surfaces)
    )
    anywhere = tf.repeat(tf.reshape(ends_anywhere, [-1]), longest + 1)
    same &= fits & tf.where(anywhere, whole & (left > 0), word_ends)
    real = (positions[None] <= flat_sizes) & tf.reshape(is_phrase, [-1, 1])
    same &= tf.reshape(real, [-1])
    beginnings = tf.where(real, beginnings, "\0")
    # PAD after each, also where there is none.
    after = tf.zeros((*tf.unstack(tf.shape(required))[:2], 1), INTEGER)
    return PhraseMemory(
        tf.concat([required, after], axis=2),
        tf.reshape(beginnings, shape),
        tf.reshape(
            tf.cast(tf.transpose(same), tf.float32),
            (shape[0], shape[1] * shape[2], len(surfaces)),
        ),
    )


def _hashed(texts):
    return tf.strings.to_hash_bucket_fast(texts, 2**62)


def _longest_of(surfaces):
    return max(map(len, surfaces))


def _boundaries(surfaces):
    """(V, Q + 1) bool twice: has q bytes or more; a word ends after q bytes.

    A word does not end with its token: the next one decides.
    """
    positions = range(_longest_of(surfaces) + 1)
    whole = [[i <= len(surface) for i in positions] for surface in surfaces]
    ends = [
        [
            i < len(surface) and not is_letter(_first_character(surface[i:]))
            for i in positions
        ]
        for surface in surfaces
    ]
    ends[END][0] = True
    return whole, ends


def _first_character(text):
    return text[:4].decode("utf-8", "replace")[0]


def is_letter(character: str) -> bool:
    """Whether a word goes on with a character: a letter, digit or mark.

    Not in a script without spaces, where no word has an end. A part of a
    character is a letter.
    """
    if character == "\ufffd":
        return True
    category = unicodedata.category(character)
    is_other = category[0] in "PSZ" or category == "Cc"
    return not is_other and re.match(_UNSPACED, character) is None


def of_phrases(met, memory: PhraseMemory, surfaces):
    """The constraint of the phrases: none forbidden, no end before all.

    Args:
        met: (R,) int64, see `progress`.
        memory: `PhraseMemory` of B items, R / B rows of each.
        surfaces: see `Phrases`.

    Returns:
        A callable (log_probs (R, V), ids (R, T)) -> (R, V).
    """
    tokens = tf.math.count_nonzero(memory.required, axis=[1, 2])
    per_item = tf.size(met) // tf.maximum(tf.size(tokens), 1)
    is_open = met < tf.repeat(tokens, per_item)

    def constrain(log_probs, ids):
        is_end = tf.range(tf.shape(log_probs)[-1]) == END
        log_probs = tf.where(is_open[:, None] & is_end, -math.inf, log_probs)
        return _without_forbidden(log_probs, ids, memory, surfaces)

    return constrain


def _with_tokens(best, log_probs, tokens):
    """The most likely tokens and others, which are not counted twice.

    Args:
        best: log-probabilities (R, W) and tokens (R, W) of the most likely.
        log_probs: (R, V) float32.
        tokens: (R, N) int64, PAD for none.

    Returns:
        log-probabilities and tokens, (R, W + N).
    """
    values, found = best
    added = tf.gather(log_probs, tokens, batch_dims=1)
    known = tf.concat([found, tokens], axis=1)
    count = tf.shape(tokens)[1]
    is_earlier = tf.range(tf.shape(known)[1]) < (
        tf.shape(found)[1] + tf.range(count)[:, None]
    )
    same = (tokens[:, :, None] == known[:, None]) & is_earlier
    added = tf.where(tf.reduce_any(same, axis=2), -math.inf, added)
    return tf.concat([values, added], axis=1), known


def _without_forbidden(log_probs, ids, memory, surfaces):
    """-inf for the tokens that complete a forbidden phrase."""
    items, phrases, longest = tf.unstack(tf.shape(memory.beginnings))
    rows = tf.shape(ids)[0]
    per_item = rows // tf.maximum(items, 1)
    texts = tf.strings.reduce_join(
        tf.gather(tf.constant(list(surfaces)), ids[:, -_LONGEST:]), axis=1
    )
    # The beginning of an answer is that of a word.
    texts = tf.strings.join(["\1" * _LONGEST + " ", texts])[:, None]
    lengths = tf.broadcast_to(tf.range(longest), (rows, longest))
    starts = tf.strings.length(texts) - lengths
    ends = tf.strings.substr(texts, starts, lengths)  # (R, P + 1)
    ends = tf.reshape(ends, (items, per_item, 1, longest))
    found = tf.cast(ends == memory.beginnings[:, None], tf.float32)
    found = tf.reshape(found, (items, per_item, phrases * longest))
    completes = tf.matmul(found, memory.completing) > 0  # (B, R / B, V)
    completes = tf.reshape(completes, tf.shape(log_probs))
    return tf.where(completes, -math.inf, log_probs)


def progress(required, ids, surfaces):
    """How far answers have come with the phrases that they must contain.

    Args:
        required: (B, N, L) int64, PAD after the tokens of each.
        ids: (R, T) int64, the tokens so far, R / B rows of each item.
        surfaces: see `Phrases`.

    Returns:
        - (R,) int64, the tokens of all phrases that an answer contains, and
          those at its end that begin one more;
        - (R, N) int64, the next token of each phrase that it does not yet
          contain, PAD for the others.
    """
    rows, length = tf.unstack(tf.shape(ids))
    items, _, longest = tf.unstack(tf.shape(required))
    phrases = tf.repeat(required, rows // tf.maximum(items, 1), axis=0)
    sizes = tf.math.count_nonzero(phrases, axis=2)  # (R, N)

    # Windows of the answer, PAD before it and after it.
    pad = tf.zeros((rows, longest), INTEGER)
    padded = tf.concat([pad, ids, pad], axis=1)
    places = tf.range(length + longest + 1)[:, None] + tf.range(longest)
    windows = tf.gather(padded, places, axis=1)  # (R, T + L + 1, L)
    same = windows[:, :, None] == phrases[:, None]  # (R, T + L + 1, N, L)
    is_last = phrases == PAD
    contained = tf.reduce_all(same | is_last[:, None], axis=3)
    in_word, goes_on = _within_words(padded, windows, phrases, sizes, surfaces)
    contained &= ~(in_word | goes_on)
    done = tf.reduce_any(contained, axis=1) | (sizes == 0)  # (R, N)

    # The last k tokens are the first k of a phrase, for the largest k < L.
    ends = windows[:, length + 1 :]  # (R, L, L), of L - 1 to 0 tokens
    counts = longest - 1 - tf.range(longest)  # tokens of each
    beyond = tf.range(longest)[None] >= counts[:, None]  # (L, L)
    begins = (ends[:, :, None] == phrases[:, None]) | beyond[None, :, None]
    begins = tf.reduce_all(begins, axis=3)  # (R, L, N)
    begins &= ~in_word[:, length + 1 :]
    counts = tf.cast(counts, INTEGER)[None, :, None]
    begins &= counts < sizes[:, None]
    begun = tf.reduce_max(tf.where(begins, counts, 0), axis=1)  # (R, N)
    begun = tf.where(done, tf.zeros_like(begun), begun)

    met = tf.reduce_sum(tf.where(done, sizes, tf.zeros_like(sizes)), axis=1)
    # Of tokens that begin several phrases, one phrase counts.
    none = tf.zeros((rows, 1), INTEGER)
    met += tf.reduce_max(tf.concat([begun, none], 1), axis=1)
    following = tf.gather(phrases, begun, batch_dims=2)
    return met, tf.where(done, tf.constant(PAD, INTEGER), following)


def _within_words(padded, windows, phrases, sizes, surfaces):
    """Where a phrase would begin in a word, and where its last word goes on.

    (R, T + L + 1, N) bool each, for a phrase that begins with a window. The
    end of the answer so far is the end of a word: the next token may differ.
    """
    begins, ends = map(tf.constant, _letter_edges(tuple(surfaces)))
    last = tf.gather(phrases, tf.maximum(sizes - 1, 0), batch_dims=2)
    before = tf.gather(ends, padded)[:, : tf.shape(windows)[1] - 1]
    before = tf.pad(before, [[0, 0], [1, 0]])[:, :, None]
    after = tf.gather(tf.gather(begins, windows), sizes, axis=2, batch_dims=1)
    return (
        before & tf.gather(begins, phrases[:, :, 0])[:, None],
        after & tf.gather(ends, last)[:, None],
    )


@functools.lru_cache(maxsize=8)
def _letter_edges(surfaces):
    """(V,) bool twice: which surfaces begin, and which end with a letter."""
    texts = [surface.decode("utf-8", "replace") for surface in surfaces]
    return tuple(
        np.array([any(map(is_letter, text[edge])) for text in texts])
        for edge in (slice(None, 1), slice(-1, None))
    )


def with_next_tokens(best, log_probs, following, surfaces):
    """The most likely tokens, and those that phrases need to come closer.

    After a phrase this is a token that does not continue its last word.

    Args:
        best: log-probabilities (R, W) and tokens (R, W) of the most likely.
        log_probs: (R, V) float32.
        following: (R, N) int64, see `progress`.
        surfaces: see `Phrases`.

    Returns:
        log-probabilities and tokens, (R, W + N + 1).
    """
    begins, _ = _letter_edges(tuple(surfaces))
    others = tf.where(tf.constant(begins), -math.inf, log_probs)
    likeliest = tf.argmax(others, axis=1, output_type=INTEGER)[:, None]
    tokens = tf.concat([following, likeliest], axis=1)
    return _with_tokens(best, log_probs, tokens)


def contains_all(required, ids, surfaces):
    """Whether answers contain all phrases: (B, N, L), (B, C, T) -> (B, C)."""
    items, count, length = tf.unstack(tf.shape(ids))
    ids = tf.reshape(ids, (items * count, length))
    met, _ = progress(required, ids, surfaces)
    tokens = tf.math.count_nonzero(required, axis=[1, 2])
    return tf.reshape(met, (items, count)) >= tokens[:, None]


def in_turn(log_probs, met):
    """An order of hypotheses in which those with most of the phrases last.

    The best one of each number of tokens met, the largest number first, then
    the second best of each, and so on.

    Args:
        log_probs: (B, C) float32.
        met: (B, C) int64, see `progress`.

    Returns:
        (B, C) int32, positions.

    Reference:
        Post and Vilar 2018, arXiv:1804.06609, section 3 (dynamic beam
        allocation).
    """
    by_score = tf.argsort(log_probs, axis=1, direction="DESCENDING")
    met = tf.gather(met, by_score, batch_dims=1)
    by_met = tf.argsort(met, axis=1, stable=True)
    met = tf.gather(met, by_met, batch_dims=1)
    places = tf.gather(by_score, by_met, batch_dims=1)
    first = tf.searchsorted(met, met, out_type=INTEGER)  # of the same number
    rank = arange(tf.shape(met)[1]) - first
    is_dead = tf.gather(log_probs, places, batch_dims=1) == -math.inf
    most = tf.reduce_max(tf.concat([[0], tf.reshape(met, [-1])], 0)) + 1
    last = tf.constant(2**62, INTEGER)
    key = tf.where(is_dead, last, rank * most + most - met)
    order = tf.argsort(key, axis=1, stable=True)
    return tf.gather(places, order, batch_dims=1)
