"""Constraints on the answers of a search."""

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.decoding.loops import INTEGER, arange
from kseq.user_error import check_integers, check_number


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedPrefix:
    """Each item's answer begins with the item's own prefix.

    While the prefix lasts, every other token is impossible. Its tokens keep the
    log-probability that the model gives them, so that an answer has the score
    that the model finds for it. The argument `prefix` of a search is this
    constraint; there it takes precedence over all others: a token that the
    prefix forces is possible even if another constraint excludes it.

    Args:
        prefix: (B, P) int32, PAD after each item's own prefix. A row of only
            PAD forces nothing. What exceeds the length limit is cut.
        following: (B, V) bool, the tokens that are possible just after each
            prefix; or None for all. Tokens that it lacks, of a model that has
            more than its tokenizer, are not.

    Call arguments:
        log_probs: (R, V) float32, the same number of rows for each item,
            those of an item consecutive.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `prefix` is not of rank 2.

    Example:
        >>> forced = ForcedPrefix([[4, 5], [5, 0]])
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]] * 2)
        >>> second = forced(log_probs, tf.constant([[4], [5]]))
        >>> np.exp(second).round(1)
        array([[0. , 0. , 0. , 0. , 0. , 0.4],
               [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]], dtype=float32)
    """

    prefix: Any
    following: Any = None

    def __post_init__(self):
        prefix = tf.cast(tf.convert_to_tensor(self.prefix), INTEGER)
        if prefix.shape.rank != 2:
            raise ValueError(
                "prefix must have the shape (B, P). "
                f"Received: prefix.shape={prefix.shape}"
            )
        object.__setattr__(self, "prefix", prefix)
        if self.following is not None:
            following = tf.convert_to_tensor(self.following, tf.bool)
            object.__setattr__(self, "following", following)

    def tokens(self, num_rows, position) -> tf.Tensor:
        """The tokens forced at a position, (R,) int64, PAD for none."""
        items, length = tf.unstack(tf.shape(self.prefix))
        pad = tf.fill((items, 1), tf.constant(PAD, INTEGER))
        padded = tf.concat([self.prefix, pad], axis=1)
        tokens = padded[:, tf.minimum(position, length)]  # (B,)
        return tf.repeat(tokens, num_rows // tf.maximum(items, 1))

    def __call__(self, log_probs, ids) -> tf.Tensor:
        num_rows, position = tf.unstack(tf.shape(ids))
        forced = self.tokens(num_rows, position)[:, None]  # (R, 1)
        vocabulary = arange(tf.shape(log_probs)[-1])
        possible = (forced == PAD) | (vocabulary == forced)
        if self.following is not None:
            lengths = tf.math.count_nonzero(self.prefix, 1, dtype=INTEGER)
            is_next = (lengths == tf.cast(position, INTEGER))[:, None]
            items, known = tf.unstack(tf.shape(self.following))
            beyond = tf.shape(log_probs)[-1] - known
            following = tf.pad(self.following, [[0, 0], [0, beyond]])
            following |= ~is_next  # (B, V)
            each = num_rows // tf.maximum(items, 1)
            possible &= tf.repeat(following, each, axis=0)
        return tf.where(possible, log_probs, -math.inf)

    def get_config(self) -> dict[str, Any]:
        config = {"prefix": self.prefix.numpy().tolist()}
        if self.following is not None:
            config["following"] = self.following.numpy().tolist()
        return config


@dataclasses.dataclass(frozen=True)
class ForbiddenTokens:
    """Tokens that are never generated.

    Args:
        ids: sequence of int, the tokens.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `ids` are not token ids, or not in the vocabulary.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> forbidden = ForbiddenTokens([1, 4])
        >>> np.exp(forbidden(log_probs, tf.zeros((1, 0), tf.int32))).round(1)
        array([[0.1, 0. , 0.1, 0.1, 0. , 0.4]], dtype=float32)
    """

    ids: tuple[int, ...] | list[int]

    is_row_wise = True

    def __post_init__(self):
        if not isinstance(self.ids, tuple | list):
            raise ValueError(
                f"ids must be a list of integers. Received: ids={self.ids}"
            )
        for token in self.ids:
            check_integers(ids=token, minimum=0)
        object.__setattr__(self, "ids", tuple(self.ids))

    def __call__(self, log_probs, ids) -> tf.Tensor:
        size = log_probs.shape[-1]
        if size is not None and max(self.ids, default=0) >= size:
            raise ValueError(
                f"Forbidden tokens must be below the vocabulary size {size}. "
                f"Received: ids={list(self.ids)}"
            )
        forbidden = tf.constant(self.ids, tf.int32)[:, None]
        vocabulary = tf.range(tf.shape(log_probs)[-1])
        is_forbidden = tf.reduce_any(vocabulary == forbidden, axis=0)  # (V,)
        return tf.where(is_forbidden, -math.inf, log_probs)

    def get_config(self) -> dict[str, Any]:
        return {"ids": list(self.ids)}


@dataclasses.dataclass(frozen=True)
class MinLength:
    """A minimum length of answers.

    The length limit of an item takes precedence.

    Args:
        length: int, minimum number of tokens of an answer, END included, as in
            `Hypotheses.lengths`.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `length` is negative or not an integer.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> np.exp(MinLength(3)(log_probs, tf.constant([[4]]))).round(1)
        array([[0.1, 0.1, 0.1, 0. , 0.2, 0.4]], dtype=float32)
    """

    length: int

    is_row_wise = True

    def __post_init__(self):
        check_integers(length=self.length, minimum=0)

    def __call__(self, log_probs, ids) -> tf.Tensor:
        is_end = tf.range(tf.shape(log_probs)[-1]) == END
        # On a GPU, TensorFlow copies int32 to the host for its shape.
        is_short = tf.shape(tf.cast(ids, INTEGER))[1] + 1 < self.length
        return tf.where(is_end & is_short, -math.inf, log_probs)

    def get_config(self) -> dict[str, Any]:
        return {"length": self.length}


@dataclasses.dataclass(frozen=True)
class NoRepeatedNgrams:
    """No n tokens in a row are generated twice in one answer.

    Args:
        n: int, 1 or more; 1 allows every token once.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `n` is not a positive integer.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> so_far = tf.constant([[4, 5, 1, 4]])  # 4 5 would be repeated
        >>> np.exp(NoRepeatedNgrams(2)(log_probs, so_far)).round(1)
        array([[0.1, 0.1, 0.1, 0.1, 0.2, 0. ]], dtype=float32)

    Reference:
        Paulus et al. 2018, arXiv:1705.04304, section 2.5.
    """

    n: int

    is_row_wise = True

    def __post_init__(self):
        check_integers(n=self.n)

    def __call__(self, log_probs, ids) -> tf.Tensor:
        ids = tf.cast(ids, INTEGER)
        length = tf.shape(ids)[1]
        n = tf.minimum(self.n, length + 1)
        count = length - n + 1  # of the n-grams so far
        places = tf.range(count)[:, None] + tf.range(n)
        ngrams = tf.gather(ids, places, axis=1)  # (R, count, n)
        last = ids[:, None, count:]  # (R, 1, n - 1)
        begins_alike = tf.reduce_all(ngrams[:, :, :-1] == last, axis=-1)
        highest = tf.where(begins_alike, -math.inf, math.inf)
        return _limited(log_probs, ngrams[:, :, -1], highest)

    def get_config(self) -> dict[str, Any]:
        return {"n": self.n}


@dataclasses.dataclass(frozen=True)
class RepetitionPenalty:
    """Makes tokens that the answer already contains less likely.

    Their log-probabilities are multiplied by the penalty: p becomes
    p ** penalty. The paper divides positive logits by it; log-probabilities
    are never positive, so the penalty never makes a token more likely here. A
    token that is nearly certain stays so: `NoRepeatedNgrams` breaks every
    loop.

    The searches choose by these numbers and their scores are sums of them: an
    answer with repeated tokens has a lower score than the model alone gives
    it. END is never in an answer that is still growing, so it never changes.

    Args:
        penalty: float, 1 or more; 1 changes nothing, the paper's value is 1.2.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32, not normalized.

    Raises:
        ValueError: if `penalty` is not a number from 1 to 1000.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> so_far = tf.constant([[5, 5]])
        >>> np.exp(RepetitionPenalty(2.0)(log_probs, so_far)).round(2)
        array([[0.1 , 0.1 , 0.1 , 0.1 , 0.2 , 0.16]], dtype=float32)

    Reference:
        Keskar et al. 2019, arXiv:1909.05858, section 4.1.
    """

    penalty: float

    is_row_wise = True

    def __post_init__(self):
        check_number("penalty", self.penalty, 1, 1000)

    def __call__(self, log_probs, ids) -> tf.Tensor:
        ids = tf.cast(ids, INTEGER)
        penalized = tf.gather(log_probs, ids, batch_dims=1) * self.penalty
        return _limited(log_probs, ids, penalized)

    def get_config(self) -> dict[str, Any]:
        return {"penalty": self.penalty}


def _limited(log_probs, tokens, highest):
    """Log-probabilities (R, V), at most the highest of these tokens (R, N)."""
    num_rows, count = tf.unstack(tf.shape(tokens))
    rows = tf.repeat(arange(num_rows)[:, None], count, axis=1)
    places = tf.stack([rows, tokens], axis=-1)
    return tf.tensor_scatter_nd_min(log_probs, places, highest)


class StopStrings:
    """Ends an answer once it contains one of these strings.

    Args:
        strings: sequence of str.
        surfaces: list of bytes, what each id adds to a text.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if there is no string, or one is empty.

    Example:
        >>> end = StopStrings(["bc"], [b"", b"", b"", b"", b"ab", b"c"])
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]] * 2)
        >>> np.exp(end(log_probs, tf.constant([[5, 4], [4, 5]]))).round(1)
        array([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4],
               [0. , 0. , 0. , 0.1, 0. , 0. ]], dtype=float32)
    """

    is_row_wise = True

    def __init__(self, strings: Sequence[str], surfaces: list[bytes]):
        if not strings or not all(
            isinstance(text, str) and text for text in strings
        ):
            raise ValueError(
                "Expected strings that are not empty. "
                f"Received: {strings!r:.100}"
            )
        self.strings = tuple(strings)
        self._surfaces = surfaces
        # A token has a byte or more, unless it is a control token.
        self._longest = max(len(text.encode()) for text in strings)

    def __call__(self, log_probs, ids) -> tf.Tensor:
        surfaces = tf.constant(self._surfaces)
        texts = tf.strings.reduce_join(
            tf.gather(surfaces, ids[:, -self._longest :]), axis=1
        )
        found = tf.strings.regex_full_match(
            texts, rf"\C*({_any_of(self.strings)})\C*"
        )
        is_end = tf.range(tf.shape(log_probs)[1]) == END
        return tf.where(found[:, None] & ~is_end, -math.inf, log_probs)


def stop_pattern(strings: Sequence[str]) -> str:
    """A regular expression of what is cut from a text: all from a string on."""
    return rf"({_any_of(strings)})\C*"


def partial_stop_pattern(strings: Sequence[str]) -> str:
    """A regular expression of an end that may be the beginning of a string."""
    parts = {each[:n] for each in strings for n in range(1, len(each))}
    return rf"({_any_of(sorted(parts))})$" if parts else "$"


def _any_of(strings):
    return "|".join(map(re.escape, strings))
