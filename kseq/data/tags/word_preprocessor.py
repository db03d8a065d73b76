"""Words of sentences to the source inputs of a model: ids of their pieces."""

import tensorflow as tf

from kseq.control_tokens import UNK
from kseq.data.files.blank_text import BLANK
from kseq.data.files.source import Source, source_of, string_signature
from kseq.data.tags.tagged_sentences import LONGEST_SENTENCE
from kseq.data.text.tokenize_all import tokenize_all
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import check_integers


class WordPreprocessor:
    """Words of sentences to the source inputs of a model, inside the graph.

    Words are separated by ASCII white space. Each becomes its own pieces, so a
    word has the same ids in any sentence.

    Every preprocessor has the same attributes and methods. It is used in
    training batches, in validation and in the served graph.

    Args:
        tokenizer: `Tokenizer`.
        max_words: int; the rest of a longer sentence is cut.
        max_pieces: int; further pieces of a word are cut.

    Call arguments:
        text: (B,) string.

    Returns:
        `Source`: `inputs` is `{"source_ids"}`, (B, W, P) int32, padded with
        PAD; a blank sentence has no pieces, a word has at least one.

    Raises:
        ValueError: if a length is not positive.

    Example:
    >>> tokenizer = Tokenizer.train(["a rose is a rose", "is a rose"], 270)
    >>> preprocessor = WordPreprocessor(tokenizer)
    >>> source = preprocessor(["a rose is", ""])
    >>> source.inputs["source_ids"].shape[:2], source.blank.numpy()
    (TensorShape([2, 3]), array([False,  True]))
    >>> preprocessor.words(["a rose is", ""]).numpy().tolist()
    [[b'a', b'rose', b'is'], [b'', b'', b'']]
    """

    input_name = "text"  # of the served signature
    input_signature = string_signature

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_words: int = LONGEST_SENTENCE,
        max_pieces: int = 16,
    ):
        check_integers(max_words=max_words, max_pieces=max_pieces)
        self.tokenizer = tokenizer
        self.max_words = max_words
        self.max_pieces = max_pieces

    def __call__(self, text) -> Source:
        words, truncated = self._split(text)
        return source_of(self._ids(words), truncated, blank_length=0)

    @property
    def vocab_size(self) -> int:
        """Number of different pieces."""
        return self.tokenizer.vocab_size

    def get_config(self) -> dict:
        """All arguments but the tokenizer."""
        return {"max_words": self.max_words, "max_pieces": self.max_pieces}

    def words(self, text) -> tf.Tensor:
        """(B,) string -> (B, W) string, "" at padding; W is at least 1."""
        words, _ = self._split(text)
        shape = tf.maximum(words.bounding_shape(), [0, 1])
        return words.to_tensor("", shape=shape)

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string -> (B, W, P) int32, ragged on both axes."""
        return self._ids(self._split(text)[0])

    def tokenize_all(self, texts: list[str]) -> tf.RaggedTensor:
        """The same for all sentences of a data set, on all cores."""
        return tokenize_all(self.tokenize, texts, "sentences")

    def _split(self, text):
        """The words, ragged, and whether `max_words` cut them, (B,) bool."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        text = tf.strings.regex_replace(text, BLANK, "")
        words = tf.strings.split(text)
        kept = words[:, : self.max_words]
        return kept, words.row_lengths() > self.max_words

    def _ids(self, words):
        pieces = self.tokenizer.tokenize(words.flat_values)
        pieces = pieces[:, : self.max_pieces].with_row_splits_dtype(tf.int64)
        # A word without pieces would have no position.
        is_empty = pieces.row_lengths() == 0
        unknown = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(is_empty)], UNK),
            tf.cast(is_empty, tf.int64),
        )
        return words.with_flat_values(tf.concat([pieces, unknown], axis=1))
