"""Answers that end after given strings."""

import math
import re

import tensorflow as tf

from kseq.control_tokens import END


class EndAfterStrings:
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
        >>> end = EndAfterStrings(["bc"], [b"", b"", b"", b"", b"ab", b"c"])
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]] * 2)
        >>> np.exp(end(log_probs, tf.constant([[5, 4], [4, 5]]))).round(1)
        array([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4],
               [0. , 0. , 0. , 0.1, 0. , 0. ]], dtype=float32)
    """

    is_row_wise = True

    def __init__(self, strings, surfaces):
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

    def __call__(self, log_probs, ids):
        surfaces = tf.constant(self._surfaces)
        texts = tf.strings.reduce_join(
            tf.gather(surfaces, ids[:, -self._longest :]), axis=1
        )
        found = tf.strings.regex_full_match(
            texts, rf"\C*({_any_of(self.strings)})\C*"
        )
        is_end = tf.range(tf.shape(log_probs)[1]) == END
        return tf.where(found[:, None] & ~is_end, -math.inf, log_probs)


def cut_pattern(strings):
    """A regular expression of what is cut from a text: all from a string on."""
    return rf"({_any_of(strings)})\C*"


def _any_of(strings):
    return "|".join(map(re.escape, strings))
