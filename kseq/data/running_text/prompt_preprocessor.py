"""Prompts to the source inputs of a language model."""

import tensorflow as tf

from kseq.control_tokens import START
from kseq.data.files.source import Source, source_of, string_signature
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import check_integers

_LONGEST = 2**20  # tokens: the generator limits its answers


class PromptPreprocessor:
    """Prompts to the source inputs of a language model, inside the graph.

    Every preprocessor has the same attributes and methods.

    Args:
        tokenizer: `Tokenizer`.
        max_length: int, maximum number of tokens of a prompt, START included;
            of a longer one the end is read.

    Call arguments:
        prompt: (B,) string.

    Returns:
        `Source`: `inputs` is `{"source_ids"}`, (B, S) int32, each row with
        START first, then PAD. No prompt is blank: an empty one is START.

    Raises:
        ValueError: `max_length` is less than 2.

    Example:
    >>> tokenizer = Tokenizer.train(["a rose "], 20, "char", verbatim=True)
    >>> source = PromptPreprocessor(tokenizer)(["a ", ""])
    >>> source.inputs["source_ids"].shape, source.blank.numpy()
    (TensorShape([2, 3]), array([False, False]))
    """

    input_name = "prompt"  # of the served signature
    input_signature = string_signature

    def __init__(self, tokenizer: Tokenizer, max_length: int = 512):
        check_integers(max_length=max_length, minimum=2)
        self.tokenizer = tokenizer
        self.max_length = max_length

    def __call__(self, prompt) -> Source:
        ids = self.tokenizer.tokenize(prompt)
        truncated = ids.row_lengths() > self.max_length - 1
        ids = ids[:, -(self.max_length - 1) :]
        starts = tf.fill([ids.nrows(), 1], START)
        source = source_of(
            tf.concat([starts, ids], axis=1), truncated, blank_length=0
        )
        return source._replace(
            lengths=tf.fill(tf.shape(truncated), _LONGEST),
            blank=tf.zeros_like(truncated),
        )

    @property
    def vocab_size(self) -> int:
        """Number of different pieces."""
        return self.tokenizer.vocab_size

    def get_config(self) -> dict:
        """All arguments but the tokenizer."""
        return {"max_length": self.max_length}
