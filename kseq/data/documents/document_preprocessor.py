"""Documents to the source inputs of a model: ids of pieces in sentences."""

import tensorflow as tf

from kseq.data.documents.documents import LINE_END, Documents
from kseq.data.files.blank_text import BLANK
from kseq.data.files.source import Source, source_of, string_signature
from kseq.data.text.sentences import break_lines
from kseq.data.text.tokenize_all import tokenize_all
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import check_integers


class DocumentPreprocessor:
    """Documents to the source inputs of a model, inside the graph.

    Sentences are those of `tensorflow_text.StateBasedSentenceBreaker`, which
    knows the full stops of many scripts and runs in a served graph; a line
    ends a sentence as well, and so does `<br>`. A sentence of more than
    `max_pieces` pieces becomes several.

    Every preprocessor has the same attributes and methods. It is used in
    training batches, in `kseq score`, in validation and in the served graph.

    Args:
        tokenizer: `Tokenizer`, of type "bpe" or "unigram".
        in_lines: bool, whether each line is already a sentence; then a TAB ends
            one as well.
        max_sentences: int; the rest of a longer document is cut.
        max_pieces: int, maximum number of pieces of a sentence.

    Call arguments:
        text: (B,) string.

    Returns:
        `Source`: `inputs` is `{"source_ids"}`, (B, L, W) int32, padded with
        PAD; a blank document has no pieces.

    Raises:
        ValueError: if a length is not positive.

    Example:
    >>> documents = Documents(["A rose is a rose. Is it?"] * 2, ["yes", "no"])
    >>> preprocessor = DocumentPreprocessor.train(documents, vocab_size=290)
    >>> source = preprocessor(["Is a rose. A rose?", ""])
    >>> source.inputs["source_ids"].shape
    TensorShape([2, 2, 4])
    >>> source.blank.numpy().tolist()
    [False, True]
    >>> sentences, pieces = preprocessor.tokens(source.inputs)
    >>> sentences.numpy().tolist()
    [[b'Is a rose.', b'A rose?'], [b'', b'']]

    Reference:
        Gillick 2009, aclanthology.org/N09-2061, for the features that the
        sentence breaker looks at.
    """

    input_name = "text"  # of the served signature
    input_signature = string_signature

    def __init__(
        self, tokenizer, *, in_lines=False, max_sentences=100, max_pieces=60
    ):
        check_integers(max_sentences=max_sentences, max_pieces=max_pieces)
        self.tokenizer = tokenizer
        self.in_lines = in_lines
        self.max_sentences = max_sentences
        self.max_pieces = max_pieces

    @classmethod
    def train(
        cls, documents: Documents, vocab_size: int, **kwargs
    ) -> "DocumentPreprocessor":
        """Learns the vocabulary of some documents.

        Args:
            documents: `Documents`.
            vocab_size: see `Tokenizer.train`.
            **kwargs: `max_sentences`, `max_pieces`.

        Raises:
            DataError: the text supports fewer pieces, or needs more.
        """
        tokenizer = Tokenizer.train(documents.lines(), vocab_size)
        return cls(tokenizer, in_lines=documents.in_lines, **kwargs)

    def __call__(self, text) -> Source:
        return source_of(*self._tokenize(text), blank_length=0)

    @property
    def vocab_size(self) -> int:
        """Number of different pieces."""
        return self.tokenizer.vocab_size

    def get_config(self) -> dict:
        """All arguments but the tokenizer."""
        names = ("in_lines", "max_sentences", "max_pieces")
        return {name: getattr(self, name) for name in names}

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string -> (B, L, W) int32, ragged on both axes.

        No sentence is empty; a document may be.
        """
        return self._tokenize(text)[0]

    def tokenize_all(self, texts: list[str]) -> tf.RaggedTensor:
        """The same for all documents of a data set, on all cores.

        Texts and ids are in memory.
        """
        return tokenize_all(self.tokenize, texts, "documents")

    def tokens(self, inputs) -> tuple[tf.Tensor, tf.Tensor]:
        """The text of `source_ids` (B, L, W).

        Returns:
            Sentences (B, L) and pieces (B, L, W), string, "" at padding, all
            of them valid UTF-8. Each piece begins with the space before it,
            even the first of a line: joined and stripped, they are the
            sentence. A byte of a character is a piece such as `<0xE6>`.
        """
        surfaces, ids = self.tokenizer.surfaces(), inputs["source_ids"]
        sentences = tf.strings.reduce_join(tf.gather(surfaces, ids), axis=-1)
        # A part of a long sentence may end within a character.
        sentences = tf.strings.unicode_transcode(sentences, "UTF-8", "UTF-8")
        pieces = tf.gather(list(map(_in_utf8, surfaces)), ids)
        return tf.strings.strip(sentences), pieces

    def _tokenize(self, text):
        """The ids, and whether `max_sentences` cut a document, (B,) bool."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        text = tf.strings.regex_replace(text, LINE_END, "\n")
        if self.in_lines:
            text = tf.strings.regex_replace(text, "\t", "\n")
        sentences = tf.strings.split(text, "\n")  # (B, lines)
        # The breaker would split a character such as U+3000.
        sentences = sentences.with_flat_values(
            tf.strings.regex_replace(sentences.flat_values, BLANK, "")
        )
        if not self.in_lines:
            broken = break_lines(sentences.flat_values)
            sentences = sentences.with_flat_values(broken).merge_dims(1, 2)

        pieces = self.tokenizer.tokenize(sentences.flat_values)
        parts = pieces.with_row_splits_dtype(tf.int64)
        parts, counts = _parts(parts, self.max_pieces)
        counts = tf.reduce_sum(sentences.with_flat_values(counts), axis=1)
        documents = tf.RaggedTensor.from_row_lengths(parts, counts)
        return documents[:, : self.max_sentences], counts > self.max_sentences


def _in_utf8(surface):
    """The text of a piece; the name of one that is part of a character."""
    is_part = len(surface) == 1 and not surface.isascii()
    return b"<0x%02X>" % surface[0] if is_part else surface


def _parts(pieces, longest):
    """Cuts rows (N, W), ragged, into parts no longer than `longest`.

    Returns:
        The parts, ragged, and the number of each row's parts, (N,).
    """
    lengths = pieces.row_lengths()
    counts = (lengths + longest - 1) // longest
    row = tf.repeat(tf.range(pieces.nrows()), counts)
    number = tf.ragged.range(counts).flat_values
    lengths = tf.minimum(tf.gather(lengths, row) - number * longest, longest)
    return tf.RaggedTensor.from_row_lengths(pieces.flat_values, lengths), counts
