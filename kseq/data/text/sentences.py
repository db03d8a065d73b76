"""Sentences of a text, inside the graph."""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_text

# Where the breaker wrongly finds an end: after initials and the most common
# titles, and before a letter or digit that follows without a space.
_IS_ABBREVIATED = r"(?s).*\b(Mr|Mrs|Ms|Dr|Prof|St|vs|[A-Z])\."
_CONTINUES = r"(?s)[a-z0-9].*"
# White space of three bytes.
_WIDE_SPACE = "[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_CLOSING = (
    r"^(?:([\x{201d}\x{300d}\x{300f}\x{ff09}]+)()|"
    r"([\"')\]}\x{bb}\x{2019}]+)([\pZ\s]|$))"
)
# A space follows such an answer, if the next one is not separated from it.
_ENDS = r"(?s).*[.!?][\"')]*"
# Bytes of the parts of a line that are cut before its sentences are.
_PARTS = (2**14, 2**10)


def break_lines(lines):
    """The sentences of lines: (N,) string -> (N, L) string, ragged.

    Spaces after an abbreviation become one.
    """
    found = _found(_with_plain_spaces(lines))
    texts = _cut(lines, found.rows, found.starts, found.ends)
    spaces = tf.where(found.continues & (found.gaps > 0), " ", "")
    joined = tf.strings.unsorted_segment_join(
        tf.strings.join([spaces, texts]),
        tf.cumsum(tf.cast(~found.continues, tf.int64)) - 1,
        tf.math.count_nonzero(~found.continues),
    )
    rows = tf.boolean_mask(found.rows, ~found.continues)
    return tf.RaggedTensor.from_value_rowids(
        joined, rows, nrows=tf.size(lines, tf.int64)
    )


class Paragraphs(NamedTuple):
    """Texts that are divided into sentences, and what is between them.

    Args:
        sentences: (M,) string, of all texts.
        before: (M,) string, the white space before each; the first of a line
            has that at the beginning of the line.
        after: (lines,) string, what is after the last sentence of a line.
        line: (M,) int64, the line of each sentence.
        lines: (B,) int64, the number of lines of each text.
    """

    sentences: tf.Tensor
    before: tf.Tensor
    after: tf.Tensor
    line: tf.Tensor
    lines: tf.Tensor

    def joined(self, answers):
        """The answers to the sentences, in the places of the sentences.

        A space is added between two answers where the sentences had none, as
        in Chinese, and the first ends with a full stop.

        Args:
            answers: (M,) string.

        Returns:
            (B,) string.
        """
        answers = tf.convert_to_tensor(answers, tf.string)
        before = _shifted(answers, "")
        is_first = _shifted(self.line, -1) != self.line
        needs_space = tf.strings.regex_full_match(before, _ENDS)
        needs_space &= (self.before == "") & ~is_first & (answers != "")
        space = tf.where(needs_space, " ", self.before)
        lines = tf.strings.unsorted_segment_join(
            tf.strings.join([space, answers]),
            self.line,
            tf.size(self.after, tf.int64),
        )
        # TensorFlow puts no separator after an empty first string.
        texts = self._text_of_line
        breaks = tf.where(_next(texts, -1) == texts, "\n", "")
        return tf.strings.unsorted_segment_join(
            tf.strings.join([lines, self.after, breaks]),
            texts,
            tf.size(self.lines),
        )

    @property
    def text(self):
        """(M,) int32, the text of each sentence."""
        return tf.gather(self._text_of_line, self.line)

    @property
    def _text_of_line(self):
        return tf.repeat(tf.range(tf.size(self.lines)), self.lines)


def split_paragraphs(text):
    r"""Divides texts into sentences, which are parts of lines.

    Sentences are those of `kseq.data.DocumentPreprocessor`, without `<br>`.

    Args:
        text: (B,) string.

    Returns:
        `Paragraphs`.

    Example:
        >>> found = split_paragraphs(tf.constant(["One.  Two?\n\n Three"]))
        >>> found.sentences.numpy().tolist()
        [b'One.', b'Two?', b'Three']
        >>> found.joined(["1.", "2?", "3"]).numpy().tolist()
        [b'1.  2?\n\n 3']

    Reference:
        Gillick 2009, aclanthology.org/N09-2061, for the features that the
        sentence breaker looks at.
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    per_text = tf.strings.split(text, "\n")  # (B, lines)
    # White space alone is no sentence; the breaker takes U+3000 for one.
    lines = per_text.flat_values
    is_blank = tf.strings.regex_full_match(lines, r"[\pZ\s]*")
    found = _found(tf.where(is_blank, "", _with_plain_spaces(lines)))
    starts_one = ~found.continues
    rows = tf.boolean_mask(found.rows, starts_one)
    starts = tf.boolean_mask(found.starts, starts_one)
    ends = tf.boolean_mask(found.ends, _next(starts_one, True))
    # Quotation marks and brackets that close the sentence before.
    rest = _cut(lines, rows, starts, ends)
    closing = tf.strings.length(rest) - tf.strings.length(
        tf.strings.regex_replace(rest, _CLOSING, r"\2\4")
    )
    same_line = _shifted(rows, -1) == rows
    follows = same_line & (_shifted(ends, 0) == starts)
    closing = tf.cast(closing, tf.int64) * tf.cast(follows, tf.int64)
    starts += closing
    ends += _next(closing, tf.constant(0, tf.int64))
    sentences = _cut(lines, rows, starts, ends)
    # The spans may hold white space at their ends.
    left = tf.strings.regex_replace(sentences, r"^[\pZ\s]+", "")
    size = tf.cast(tf.strings.length(left), tf.int64)
    starts = ends - size
    left = tf.strings.regex_replace(left, r"[\pZ\s]+$", "")
    ends = starts + tf.cast(tf.strings.length(left), tf.int64)

    previous = _shifted(ends, 0) * tf.cast(same_line, tf.int64)
    is_last = _next(rows, tf.constant(-1, tf.int64)) != rows
    last = tf.math.unsorted_segment_sum(  # 0 where there is none
        ends * tf.cast(is_last, tf.int64), rows, tf.size(lines, tf.int64)
    )
    return Paragraphs(
        sentences=left,
        before=_cut(lines, rows, previous, starts),
        after=tf.strings.substr(
            lines, last, tf.cast(tf.strings.length(lines), tf.int64) - last
        ),
        line=rows,
        lines=per_text.row_lengths(),
    )


def _cut(lines, rows, starts, ends):
    """Parts of lines, in their order: bytes from `starts` to `ends`, (M,).

    TensorFlow copies a string before it cuts a part from it: sentence by
    sentence, a line of 1 MB would be copied some 20,000 times. So it is cut
    into larger parts first.
    """
    for size in _PARTS:
        part = starts // size
        is_first = _shifted(rows, -1) != rows
        is_first |= _shifted(part, -1) != part
        first = tf.boolean_mask(starts, is_first)
        last = tf.boolean_mask(ends, _next(is_first, True))
        lines = tf.strings.substr(
            tf.gather(lines, tf.boolean_mask(rows, is_first)),
            first,
            last - first,
        )
        rows = tf.cumsum(tf.cast(is_first, tf.int64)) - 1
        starts -= tf.gather(first, rows)
        ends -= tf.gather(first, rows)
    return tf.strings.substr(tf.gather(lines, rows), starts, ends - starts)


def _with_plain_spaces(lines):
    """As many bytes: the breaker splits the characters of wider spaces."""
    lines = tf.strings.regex_replace(lines, "[\u00a0\u0085]", "  ")
    return tf.strings.regex_replace(lines, _WIDE_SPACE, "   ")


class _Found(NamedTuple):
    """What the breaker finds, some of which belongs to what is before it."""

    texts: tf.Tensor
    starts: tf.Tensor  # bytes of the line
    ends: tf.Tensor
    gaps: tf.Tensor  # bytes after the one before
    rows: tf.Tensor  # lines
    continues: tf.Tensor


def _found(lines):
    breaker = tensorflow_text.StateBasedSentenceBreaker()
    found, starts, ends = breaker.break_sentences_with_offsets(lines)
    texts, rows = found.flat_values, found.value_rowids()
    starts, ends = starts.flat_values, ends.flat_values
    gaps = starts - _shifted(ends, -1)
    continues = tf.strings.regex_full_match(texts, _CONTINUES) & (gaps == 0)
    continues |= tf.strings.regex_full_match(
        _shifted(texts, ""), _IS_ABBREVIATED
    )
    continues &= _shifted(rows, -1) == rows  # but not from line to line
    return _Found(texts, starts, ends, gaps, rows, continues)


def _next(values, last):
    """(N,) -> (N,): the value after each."""
    return tf.concat([values, [last]], axis=0)[1:]


def _shifted(values, first):
    """(N,) -> (N,): the value before each."""
    return tf.concat([[first], values], axis=0)[:-1]
