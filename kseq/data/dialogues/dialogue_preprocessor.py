"""Turns of dialogues to the source inputs of a model."""

import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.data.files.blank_text import BLANK
from kseq.data.files.source import Source, source_of
from kseq.data.text.tokenizer import Tokenizer
from kseq.user_error import check_integers

# All white space, as `str.split` knows it.
_SPACE = r"[\s\v\x1c-\x1f\x{85}\pZ]+"
_LENGTH = 32  # of a source whose answers have an ordinary length


class DialoguePreprocessor:
    """The turns of a dialogue to the source inputs of a model.

    The pieces of each turn, with END after it, in the order of the turns: one
    sequence, or with `nested` a sequence for each turn. Blank turns are
    dropped.

    Every preprocessor has the same attributes and methods. It is used in
    training batches, in `kseq score`, in validation and in the served graph.

    Args:
        tokenizer: `Tokenizer`.
        max_turns: int, the last turns that are read.
        max_pieces: int, maximum number of pieces of a turn, END included; the
            rest of the turn is cut.
        nested: bool, whether turns are an axis of their own.

    Call arguments:
        turns: (B, N) string.

    Returns:
        `Source`: `inputs` is `{"source_ids"}`, (B, S) int32 or, with `nested`,
        (B, N, W), padded with PAD. Without any turn there is one END.

    Raises:
        ValueError: a number is not positive, or leaves no room for a piece.

    Example:
    >>> tokenizer = Tokenizer.train(["a rose is a rose", "is a rose"], 270)
    >>> preprocessor = DialoguePreprocessor(tokenizer, nested=True)
    >>> source = preprocessor([["a rose", "is", ""], ["", "", ""]])
    >>> source.inputs["source_ids"].shape
    TensorShape([2, 2, 5])
    >>> source.blank.numpy().tolist()
    [False, True]
    >>> pieces = preprocessor.tokens(source.inputs)[0].numpy()
    >>> [piece.decode() for piece in pieces]
    ['▁a', '▁r', 'os', 'e', '</s>', '▁', 'i', 's', '</s>', '']
    """

    input_name = "turns"  # of the served signature

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        max_turns: int = 5,
        max_pieces: int = 100,
        nested: bool = False,
    ):
        check_integers(max_turns=max_turns)
        check_integers(max_pieces=max_pieces, minimum=2)
        self.tokenizer = tokenizer
        self.max_turns = max_turns
        self.max_pieces = max_pieces
        self.nested = nested

    def __call__(self, turns) -> Source:
        texts = _clean(tf.convert_to_tensor(turns))
        ids, truncated = self._tokenize(texts)
        ids = _turns(ids) if self.nested else ids
        source = source_of(ids, truncated, blank_length=1)  # END alone
        return source._replace(lengths=tf.fill(tf.shape(truncated), _LENGTH))

    @property
    def input_signature(self) -> dict[str, tf.TensorSpec]:
        """The inputs of a served signature, passed to a call by name."""
        return {"turns": tf.TensorSpec((None, None), tf.string, name="turns")}

    @property
    def vocab_size(self) -> int:
        """Number of different pieces."""
        return self.tokenizer.vocab_size

    def get_config(self) -> dict:
        """All arguments but the tokenizer."""
        names = ("max_turns", "max_pieces", "nested")
        return {name: getattr(self, name) for name in names}

    def tokenize(self, text) -> tf.RaggedTensor:
        """(B,) string, a line for each turn -> (B, S) int32, ragged."""
        turns = tf.strings.split(text, "\n")
        turns = turns.with_flat_values(_clean(turns.flat_values))
        return self._tokenize(turns)[0]

    def lengths(self, ids) -> tf.Tensor:
        """The positions that each row of ragged ids may take in a batch, (B,).

        With an axis of turns that is `max_turns` times the longest turn,
        because other rows of the batch may have that many turns.
        """
        if not self.nested:
            return ids.row_lengths()
        longest = tf.reduce_max(_turns(ids).row_lengths(axis=2), axis=1)
        return self.max_turns * longest

    def look_up(self, inputs, labels, weight, whole_width=False):
        """A batch with an axis of turns, if `nested`.

        Args:
            inputs: of pairs, all turns in one sequence.
            labels: returned unchanged.
            weight: returned unchanged.
            whole_width: whether there are `max_turns` turns that together have
                the width of `source_ids`; otherwise the number and length of
                turns in this batch.
        """
        if self.nested:
            ids = inputs["source_ids"]
            shape = None
            if whole_width:
                width = tf.shape(ids)[1] // self.max_turns
                shape = (-1, self.max_turns, width)
            inputs = {**inputs, "source_ids": _split(ids, shape)}
        return inputs, labels, weight

    def tokens(self, inputs) -> tf.Tensor:
        """The pieces, (B, S) or (B, N * W) string, "" at padding."""
        ids = inputs["source_ids"]
        ids = tf.reshape(ids, (tf.shape(ids)[0], -1))
        return tf.where(ids == PAD, "", self.tokenizer.pieces(ids))

    def _tokenize(self, turns):
        """(B, N) string, ragged -> (B, S) int32, ragged; what was cut (B,)."""
        turns = tf.ragged.boolean_mask(turns, turns != "")
        turns = turns[:, -self.max_turns :]
        # If there is no turn, a blank one.
        none = tf.cast(turns.row_lengths() == 0, tf.int64)
        blank = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(none)], ""), none
        )
        turns = tf.concat([turns, blank], axis=1)
        ids, cut = self.tokenizer.tokenize_with_end(
            turns.flat_values, self.max_pieces
        )
        ids = turns.with_flat_values(
            ids.with_row_splits_dtype(turns.row_splits.dtype)
        )
        truncated = tf.reduce_any(turns.with_flat_values(cut), axis=1)
        return ids.merge_dims(1, 2), truncated


def _clean(texts):
    """White space of all kinds becomes one space, and none at the ends."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
    texts = tf.strings.regex_replace(texts, BLANK, "")
    return tf.strings.strip(tf.strings.regex_replace(texts, _SPACE, " "))


def _turns(ids):
    """(B, S) int, ragged, each turn with its END -> (B, N, W), ragged."""
    is_end = ids.flat_values == END
    limits = tf.where(is_end)[:, 0] + 1
    turns = tf.RaggedTensor.from_row_limits(ids.flat_values, limits)
    counts = tf.reduce_sum(
        tf.cast(ids.with_flat_values(is_end), tf.int64), axis=1
    )
    return tf.RaggedTensor.from_row_lengths(turns, counts)


def _split(ids, shape):
    """(B, S) int, padded, each turn with its END -> (B, N, W)."""
    # The example that shows a shape can be cut inside of a turn.
    last = tf.where(ids[:, -1:] == PAD, PAD, END)
    ids = tf.concat([ids[:, :-1], last], axis=1)
    turns = _turns(tf.RaggedTensor.from_tensor(ids, padding=PAD))
    return turns.to_tensor(PAD, shape=shape)
