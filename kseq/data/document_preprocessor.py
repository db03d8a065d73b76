"""Documents to ids of words in sentences, and back to strings."""

import re

import tensorflow as tf
import tensorflow_text

from kseq.data.documents import Documents
from kseq.data.tokenizer import Tokenizer

# What ends a line, in a web page too.
_LINE_END = r"(?i)<br ?/?>|\r\n?"

_BLOCK = 256  # documents of a data set that are tokenized as one

# Where the breaker takes for an end what is none: behind initials and the
# commonest titles, and before a letter or digit that follows without a space.
_IS_ABBREVIATED = r"(?s).*\b(Mr|Mrs|Ms|Dr|Prof|St|vs|[A-Z])\."
_GOES_ON = r"(?s)[a-z0-9].*"


class DocumentPreprocessor:
    """Documents to ids of words in sentences, inside the graph.

    Sentences are those of `tensorflow_text.StateBasedSentenceBreaker`, which
    knows the full stops of many scripts and runs in a served graph; a line
    ends a sentence as well, and so does `<br>`. A sentence of more than
    `max_words` words goes on as another one. Words are the pieces of a
    `Tokenizer`.

    Args:
        tokenizer: `Tokenizer`, of type "bpe" or "unigram".
        in_lines: bool, whether each line is a ready sentence; then a TAB
            ends one as well.
        max_sentences: int; what follows in a document is left out.
        max_words: int, the longest sentence.

    Raises:
        ValueError: if a length is not positive.

    Example:
    >>> documents = Documents(["A rose is a rose. Is it?"] * 2, ["yes", "no"])
    >>> tokenizer = DocumentPreprocessor.train(documents, vocab_size=290)
    >>> ids = tokenizer.tokenize(["Is a rose. A rose?", ""])
    >>> ids.row_lengths().numpy().tolist()
    [2, 0]
    >>> sentences, words = tokenizer.strings(ids.to_tensor())
    >>> sentences.numpy().tolist()
    [[b'Is a rose.', b'A rose?'], [b'', b'']]

    Reference:
        Gillick 2009, aclanthology.org/N09-2061, for the features that the
        sentence breaker looks at.
    """

    def __init__(
        self, tokenizer, *, in_lines=False, max_sentences=100, max_words=60
    ):
        for name, value in (
            ("max_sentences", max_sentences),
            ("max_words", max_words),
        ):
            if value < 1:
                raise ValueError(
                    f"{name} must be positive. Received: {name}={value}"
                )
        self.tokenizer = tokenizer
        self.in_lines = in_lines
        self.max_sentences = max_sentences
        self.max_words = max_words

    @classmethod
    def train(
        cls, documents: Documents, vocab_size: int, **kwargs
    ) -> "DocumentPreprocessor":
        """Learns the vocabulary of some documents.

        Args:
            documents: `Documents`.
            vocab_size: see `Tokenizer.train`.
            **kwargs: `max_sentences`, `max_words`.

        Raises:
            DataError: the text cannot carry a vocabulary of that size.
        """
        lines = (
            line
            for text in documents.texts
            for line in re.sub(_LINE_END, "\n", text).split("\n")
        )
        tokenizer = Tokenizer.train(lines, vocab_size)
        return cls(tokenizer, in_lines=documents.in_lines, **kwargs)

    @property
    def vocab_size(self) -> int:
        """Number of different words."""
        return self.tokenizer.vocab_size

    def get_config(self) -> dict:
        """All arguments but the tokenizer."""
        names = ("in_lines", "max_sentences", "max_words")
        return {name: getattr(self, name) for name in names}

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string -> (B, L, W) int32, ragged on both axes.

        No sentence is empty; a document may be.
        """
        return self.tokenize_and_cut(text)[0]

    def tokenize_all(self, texts: list[str]) -> tf.RaggedTensor:
        """The same for all documents of a data set, on all cores."""
        blocks = tf.data.Dataset.from_tensor_slices(texts).batch(_BLOCK)
        return tf.concat(
            list(blocks.map(self.tokenize, tf.data.AUTOTUNE)), axis=0
        )

    def tokenize_and_cut(self, text) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The same, and whether `max_sentences` cut a document, (B,) bool."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        text = tf.strings.regex_replace(text, _LINE_END, "\n")
        if self.in_lines:
            text = tf.strings.regex_replace(text, "\t", "\n")
        sentences = tf.strings.split(text, "\n")  # (B, lines)
        if not self.in_lines:
            broken = _break(sentences.flat_values)
            sentences = sentences.with_flat_values(broken).merge_dims(1, 2)

        words = self.tokenizer.tokenize(sentences.flat_values)
        parts = words.with_row_splits_dtype(tf.int64)
        parts, counts = _parts(parts, self.max_words)
        counts = tf.reduce_sum(sentences.with_flat_values(counts), axis=1)
        documents = tf.RaggedTensor.from_row_lengths(parts, counts)
        return documents[:, : self.max_sentences], counts > self.max_sentences

    def strings(self, ids) -> tuple[tf.Tensor, tf.Tensor]:
        """What ids stand for.

        Args:
            ids: (B, L, W) int, padded with PAD.

        Returns:
            Sentences (B, L) and words (B, L, W), string, "" at padding. A
            word begins with the space before it, the first of a line with
            one too: joined and stripped, they are the sentence.
        """
        words = tf.gather(tf.constant(self.tokenizer.surfaces()), ids)
        sentences = tf.strings.reduce_join(words, axis=-1)
        return tf.strings.strip(sentences), words


def _break(lines):
    """(N,) string -> (N, L) string, ragged: the sentences of each line."""
    breaker = tensorflow_text.StateBasedSentenceBreaker()
    found, starts, ends = breaker.break_sentences_with_offsets(lines)
    sentences, rows = found.flat_values, found.value_rowids()
    gap = starts.flat_values - _before(ends.flat_values, -1)
    goes_on = tf.strings.regex_full_match(sentences, _GOES_ON) & (gap == 0)
    goes_on |= tf.strings.regex_full_match(
        _before(sentences, ""), _IS_ABBREVIATED
    )
    goes_on &= _before(rows, -1) == rows  # but not from line to line

    spaces = tf.where(goes_on & (gap > 0), " ", "")
    joined = tf.strings.unsorted_segment_join(
        tf.strings.join([spaces, sentences]),
        tf.cumsum(tf.cast(~goes_on, tf.int64)) - 1,
        tf.math.count_nonzero(~goes_on),
    )
    return tf.RaggedTensor.from_value_rowids(
        joined, tf.boolean_mask(rows, ~goes_on), nrows=found.nrows()
    )


def _before(values, first):
    """(N,) -> (N,): the value before each."""
    return tf.concat([[first], values], axis=0)[:-1]


def _parts(words, longest):
    """Cuts rows (N, W), ragged, into parts no longer than `longest`.

    Returns:
        The parts, ragged, and how many each row gave, (N,): none if empty.
    """
    lengths = words.row_lengths()
    counts = (lengths + longest - 1) // longest
    row = tf.repeat(tf.range(words.nrows()), counts)
    number = tf.ragged.range(counts).flat_values
    lengths = tf.minimum(tf.gather(lengths, row) - number * longest, longest)
    return tf.RaggedTensor.from_row_lengths(words.flat_values, lengths), counts
