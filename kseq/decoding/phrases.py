"""Phrases that the answer of each item must or must not contain."""

import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, UNK
from kseq.decoding.loops import INTEGER, arange

_LONGEST = 255  # bytes of a forbidden phrase that are compared
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Kana, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_NO_LETTER = rf"[\pP\pS\pZ\p{{Cc}}{_UNSPACED}]"  # see `is_letter`
_UNKNOWN = " \u2047 ".encode()  # how SentencePiece shows it


class Phrases(NamedTuple):
    """What the answer of each item must and must not contain.

    Args:
        required: (B, N, L) int, the tokens of up to N phrases, PAD after those
            of each; a phrase of PAD alone is none. An answer contains them
            as whole words. Or (B, N, A, L), each phrase in A ways of which
            one is enough, such as with and without a space before it.
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
        required: (B, N, A, L) int64.
        forbidden: (B, U) bool, which phrases of the `Completions` are theirs.
    """

    required: tf.Tensor
    forbidden: tf.Tensor


class Completions(NamedTuple):
    """What completes the U forbidden phrases of a batch, in K cases.

    Args:
        phrases: (K,) int32, which phrase.
        sizes: (K,) int32, how many bytes of it an answer already has.
        beginnings: (K,) int64, hashes of them.
        at_edge: (K,) bool, whether a word must begin with them.
        tokens: (K, V) float32, 1 for those that complete the phrase.
    """

    phrases: tf.Tensor
    sizes: tf.Tensor
    beginnings: tf.Tensor
    at_edge: tf.Tensor
    tokens: tf.Tensor


def different_phrases(forbidden):
    """(U,) string, different ones, and (B, M) int32, which each one is."""
    texts = tf.strings.substr(tf.strings.strip(forbidden), 0, _LONGEST)
    texts, numbers = tf.unique(tf.reshape(texts, [-1]))
    return texts, tf.reshape(numbers, tf.shape(forbidden))


def phrase_memory(required, numbers, texts):
    """`PhraseMemory` of items, of what `different_phrases` gives."""
    # PAD after each, also where there is none.
    after = tf.zeros((*tf.unstack(tf.shape(required))[:3], 1), INTEGER)
    is_theirs = tf.one_hot(numbers, tf.size(texts), True, False, dtype=tf.bool)
    return PhraseMemory(
        tf.concat([required, after], axis=3), tf.reduce_any(is_theirs, axis=1)
    )


def num_tokens(required):
    """(B,) int64, of all phrases (B, N, A, L), each in its longest way."""
    sizes = tf.math.count_nonzero(required, axis=3)
    return tf.reduce_sum(tf.reduce_max(sizes, axis=2), axis=1)


def completions(texts, surfaces: Sequence[bytes]):
    """The `Completions` of (U,) phrases."""
    surfaces = _shown(surfaces)
    begins_word = ~tf.strings.regex_full_match(texts, rf"{_NO_LETTER}\C*")
    sizes = tf.strings.length(texts)  # (U,) int32, bytes
    longest = tf.reduce_max(tf.concat([[0], sizes], 0))
    done = tf.tile(tf.range(longest + 1)[None], (tf.size(texts), 1))
    is_part = (done <= sizes[:, None]) & (sizes > 0)[:, None]
    places = tf.cast(tf.where(is_part), tf.int32)
    within = _cases(texts, places, begins_word, surfaces)
    # A phrase also begins, and ends, within a token.
    numbers, parts = _inner_parts(surfaces)
    first = tf.cast(tf.where(sizes > 0), tf.int32)
    places = tf.pad(first, [[0, 0], [0, 1]])
    never = tf.zeros_like(begins_word)
    inner = _cases(texts, places, never, parts)
    by_part = tf.transpose(inner.tokens)
    tokens = tf.math.unsorted_segment_sum(by_part, numbers, len(surfaces))
    inner = inner._replace(tokens=tf.transpose(tokens))
    pairs = zip(within, inner, strict=True)
    return Completions(*(tf.concat(pair, axis=0) for pair in pairs))


def _cases(texts, places, at_edge, surfaces):
    """The `Completions` after a number of bytes of a phrase.

    A token completes a phrase if it begins with the rest of it, and the word
    ends there: with a token that follows, if not with this one.

    Args:
        texts: (U,) string.
        places: (P, 2) int32, number of a phrase and of its bytes.
        at_edge: (U,) bool.
        surfaces: list of bytes.
    """
    ends_word = ~tf.strings.regex_full_match(texts, rf"\C*{_NO_LETTER}")
    left = tf.strings.length(tf.gather(texts, places[:, 0])) - places[:, 1]
    all_tokens = tf.constant(surfaces)
    whole, word_ends = _boundaries(surfaces)
    parts = []
    for size in range(max(map(len, surfaces)) + 1):
        numbers, done = tf.unstack(places[left == size], axis=1)
        phrases, none = tf.gather(texts, numbers), tf.zeros_like(done)
        rest = tf.strings.substr(phrases, done, none + size)
        cut = tf.strings.substr(all_tokens, 0, size)
        tokens = _hashed(cut) == _hashed(rest)[:, None]
        is_word = tf.gather(ends_word, numbers)[:, None]
        ends = whole[:, size] & (size > 0)
        tokens &= tf.where(is_word, word_ends[:, size], ends)  # (P, V)
        cases = Completions(
            phrases=numbers,
            sizes=done,
            beginnings=_hashed(tf.strings.substr(phrases, none, done)),
            at_edge=tf.gather(at_edge, numbers),
            tokens=tf.cast(tokens, tf.float32),
        )
        is_case = tf.reduce_any(tokens, axis=1)
        parts.append([tensor[is_case] for tensor in cases])
    pairs = zip(*parts, strict=True)
    return Completions(*(tf.concat(each, axis=0) for each in pairs))


def _shown(surfaces):
    """The surfaces, as an answer shows an unknown token, and END as a line."""
    shown = list(surfaces)
    shown[UNK], shown[END] = _UNKNOWN, b"\n"
    return shown


def _inner_parts(surfaces):
    """What begins within a token where a phrase may begin.

    Returns:
        (E,) ints, the tokens, and (E,) bytes, the ends of their surfaces.
    """
    numbers, parts = [], []
    for number, surface in enumerate(surfaces):
        text = surface.decode("utf-8", "surrogateescape")
        for place in range(1, len(text)):
            before, character = map(is_letter, text[place - 1 : place + 1])
            if not (before and character) and not text[place].isspace():
                numbers.append(number)
                parts.append(text[place:].encode("utf-8", "surrogateescape"))
    return numbers, parts


def _hashed(texts):
    return tf.strings.to_hash_bucket_fast(texts, 2**62)


def _boundaries(surfaces):
    """(V, Q + 1) bool twice: has q bytes or more; a word ends after q bytes.

    A word does not end with its token: the next one decides.
    """
    positions = range(max(map(len, surfaces)) + 1)
    whole = [[i <= len(surface) for i in positions] for surface in surfaces]
    ends = [
        [
            i < len(surface) and not is_letter(_first_character(surface[i:]))
            for i in positions
        ]
        for surface in surfaces
    ]
    return tf.constant(whole), tf.constant(ends)


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
    return not is_other and re.match(f"[{_UNSPACED}]", character) is None


def of_phrases(met, memory: PhraseMemory, found: Completions, surfaces):
    """The constraint of the phrases: none forbidden, no end before all.

    Args:
        met: (R,) int64, see `progress`.
        memory: `PhraseMemory` of B items, R / B rows of each.
        found: `Completions`.
        surfaces: see `Phrases`.

    Returns:
        A callable (log_probs (R, V), ids (R, T)) -> (R, V).
    """
    tokens = num_tokens(memory.required)
    per_item = tf.size(met) // tf.maximum(tf.size(tokens), 1)
    is_open = met < tf.repeat(tokens, per_item)
    forbidden = tf.repeat(memory.forbidden, per_item, axis=0)

    def constrain(log_probs, ids):
        is_end = tf.range(tf.shape(log_probs)[-1]) == END
        log_probs = tf.where(is_open[:, None] & is_end, -math.inf, log_probs)
        completes = _completing(ids, forbidden, found, surfaces)
        return tf.where(completes, -math.inf, log_probs)

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


def _completing(ids, forbidden, found, surfaces):
    """(R, V) bool, the tokens that complete a forbidden phrase, (R, U) bool."""
    texts = tf.strings.reduce_join(
        tf.gather(tf.constant(_shown(surfaces)), ids[:, -_LONGEST:]), axis=1
    )
    # The beginning of an answer is that of a word.
    texts = tf.strings.join([" " * (_LONGEST + 4), texts])[:, None]
    longest = tf.reduce_max(tf.concat([[0], found.sizes], 0))
    shape = tf.shape(ids)[0], longest + 1
    lengths = tf.broadcast_to(tf.range(longest + 1), shape)
    starts = tf.strings.length(texts) - lengths
    ends = _hashed(tf.strings.substr(texts, starts, lengths))  # (R, P + 1)
    # The last character before them is in these bytes.
    before = tf.strings.substr(texts, starts - 4, tf.fill(shape, 4))
    is_edge = tf.strings.regex_full_match(before, rf"\C*{_NO_LETTER}")

    same = tf.gather(ends, found.sizes, axis=1) == found.beginnings
    same &= tf.gather(is_edge, found.sizes, axis=1) | ~found.at_edge
    same &= tf.gather(forbidden, found.phrases, axis=1)  # (R, K)
    return tf.matmul(tf.cast(same, tf.float32), found.tokens) > 0


def progress(required, ids, surfaces):
    """How far answers have come with the phrases that they must contain.

    Args:
        required: (B, N, A, L) int64, PAD after the tokens of each.
        ids: (R, T) int64, the tokens so far, R / B rows of each item.
        surfaces: see `Phrases`.

    Returns:
        - (R,) int64, the tokens of all phrases that an answer contains, and
          those at its end that begin one more;
        - (R, N * A) int64, the next token of each way of a phrase that it
          does not yet contain, PAD for the others.
    """
    rows, length = tf.unstack(tf.shape(ids))
    items, count, ways, longest = tf.unstack(tf.shape(required))
    phrases = tf.reshape(required, (items, count * ways, longest))
    phrases = tf.repeat(phrases, rows // tf.maximum(items, 1), axis=0)
    sizes = tf.math.count_nonzero(phrases, axis=2)  # (R, N * A)

    # Windows of the answer, PAD before it and after it.
    pad = tf.zeros((rows, longest), INTEGER)
    padded = tf.concat([pad, ids, pad], axis=1)
    places = tf.range(length + longest + 1)[:, None] + tf.range(longest)
    windows = tf.gather(padded, places, axis=1)  # (R, T + L + 1, L)
    same = windows[:, :, None] == phrases[:, None]  # (R, T + L + 1, N * A, L)
    is_last = phrases == PAD
    contained = tf.reduce_all(same | is_last[:, None], axis=3)
    in_word, goes_on = _within_words(padded, windows, phrases, sizes, surfaces)
    contained &= ~(in_word | goes_on)
    done = tf.reduce_any(contained, axis=1) | (sizes == 0)  # (R, N * A)
    by_phrase = (rows, count, ways)
    has_phrase = tf.reduce_any(tf.reshape(done, by_phrase), axis=2)  # (R, N)
    whole = tf.reduce_max(tf.reshape(sizes, by_phrase), axis=2)
    done = tf.repeat(has_phrase, ways, axis=1)

    # The last k tokens are the first k of a phrase, for the largest k < L.
    ends = windows[:, length + 1 :]  # (R, L, L), of L - 1 to 0 tokens
    counts = longest - 1 - tf.range(longest)  # tokens of each
    beyond = tf.range(longest)[None] >= counts[:, None]  # (L, L)
    begins = (ends[:, :, None] == phrases[:, None]) | beyond[None, :, None]
    begins = tf.reduce_all(begins, axis=3)  # (R, L, N * A)
    begins &= ~in_word[:, length + 1 :]
    counts = tf.cast(counts, INTEGER)[None, :, None]
    begins &= counts < sizes[:, None]
    begun = tf.reduce_max(tf.where(begins, counts, 0), axis=1)  # (R, N * A)
    begun = tf.where(done, tf.zeros_like(begun), begun)

    met = tf.where(has_phrase, whole, tf.zeros_like(whole))
    met = tf.reduce_sum(met, axis=1)
    # Of tokens that begin several phrases, one phrase counts.
    none = tf.zeros((rows, 1), INTEGER)
    met += tf.reduce_max(tf.concat([begun, none], 1), axis=1)
    following = tf.gather(phrases, begun, batch_dims=2)
    return met, tf.where(done, tf.constant(PAD, INTEGER), following)


def _within_words(padded, windows, phrases, sizes, surfaces):
    """Where a phrase would begin in a word, and where its last word goes on.

    (R, T + L + 1, N * A) bool each, for a phrase that begins with a window. The
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
        [any(map(is_letter, text[edge])) for text in texts]
        for edge in (slice(None, 1), slice(-1, None))
    )


def with_next_tokens(best, log_probs, following, surfaces):
    """The most likely tokens, and those that phrases need to come closer.

    After a phrase this is a token that does not continue its last word.

    Args:
        best: log-probabilities (R, W) and tokens (R, W) of the most likely.
        log_probs: (R, V) float32.
        following: (R, N * A) int64, see `progress`.
        surfaces: see `Phrases`.

    Returns:
        log-probabilities and tokens, (R, W + N * A + 1).
    """
    begins, _ = _letter_edges(tuple(surfaces))
    others = tf.where(tf.constant(begins), -math.inf, log_probs)
    likeliest = tf.argmax(others, axis=1, output_type=INTEGER)[:, None]
    tokens = tf.concat([following, likeliest], axis=1)
    return _with_tokens(best, log_probs, tokens)


def contains_all(required, ids, surfaces):
    """(B, C) bool, which answers (B, C, T) contain all phrases (B, N, A, L)."""
    items, count, length = tf.unstack(tf.shape(ids))
    ids = tf.reshape(ids, (items * count, length))
    met, _ = progress(required, ids, surfaces)
    tokens = num_tokens(required)
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
