"""Lines of text to the source inputs of a model."""

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.source import Source, source_of, string_signature
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import check_integers


class TextPreprocessor:
    """Lines of text to the source inputs of a model, inside the graph.

    Every preprocessor has the same attributes and methods. It is used in
    training batches, in `kseq score`, in validation and in the served graph.

    Args:
        tokenizer: `Tokenizer`.
        max_length: int, maximum number of tokens of a source at inference, END
            included; the rest of the source is cut. Training leaves out long
            pairs instead, see `training_batches`.

    Call arguments:
        text: (B,) string.

    Returns:
        `Source`: `inputs` is `{"source_ids"}`, (B, S) int32, each row with
        END, then PAD; a blank line has END alone.

    Raises:
        ValueError: `max_length` is less than 2.

    Example:
    >>> lines = ["a rose is a rose", "is a rose"]
    >>> preprocessor = TextPreprocessor(Tokenizer.train(lines, 270))
    >>> source = preprocessor(["a", ""])
    >>> source.lengths.numpy(), source.blank.numpy()
    (array([2, 1], dtype=int32), array([False,  True]))
    >>> pieces = preprocessor.tokens(source.inputs).numpy()
    >>> [piece.decode() for piece in pieces[0]]
    ['▁a', '</s>']
    """

    input_name = "text"  # of the served signature
    input_signature = string_signature

    def __init__(self, tokenizer: Tokenizer, max_length: int = 512):
        check_integers(max_length=max_length, minimum=2)
        self.tokenizer = tokenizer
        self.max_length = max_length

    def __call__(self, text) -> Source:
        ids, truncated = self.tokenizer.tokenize_with_end(text, self.max_length)
        return source_of(ids, truncated, blank_length=1)

    @property
    def vocab_size(self) -> int:
        """Number of different pieces."""
        return self.tokenizer.vocab_size

    def get_config(self) -> dict:
        """All arguments but the tokenizer."""
        return {"max_length": self.max_length}

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string -> (B, S) int32, ragged, with END and uncut."""
        return self.tokenizer.tokenize_with_end(text)[0]

    def lengths(self, ids) -> tf.Tensor:
        """The tokens of each row of ragged ids, (B,) int64."""
        return ids.row_lengths()

    def tokens(self, inputs) -> tf.Tensor:
        """The pieces of `source_ids`, (B, S) string, "" at padding."""
        ids = inputs["source_ids"]
        return tf.where(ids == PAD, "", self.tokenizer.pieces(ids))
