"""Turns of dialogues in files: those before an answer, and answers."""

import numpy as np
import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.data.dialogues.dialogue_preprocessor import DialoguePreprocessor
from kseq.data.files.ragged_array import RaggedArray, as_tensor, read

_BLOCK = 2**16  # answers whose lengths are computed together


class TurnRanges:
    """One side of all answers: the turns before each, or the answer itself.

    It is read as a `RaggedArray` with a row of ids for each answer. Rows are
    made of the turns when they are read, so that the same files serve for any
    number of turns.

    Args:
        ids: the pieces of all turns, each with END, (D, N, W).
        answers: (D + 1,) int64, how many answers the dialogues before each
            have, and all of them. Every turn but the first is one.
        preprocessor: says how many turns are read before an answer, and how
            many pieces of each; None for the answer itself.
    """

    def __init__(
        self,
        ids: RaggedArray,
        answers: np.ndarray,
        preprocessor: DialoguePreprocessor | None = None,
    ):
        self._ids = ids.values
        self._count = int(answers[-1])
        self._preprocessor = preprocessor
        self._answers = as_tensor(answers)

    def __len__(self):
        return self._count

    def blocks_of_lengths(self):
        """The lengths of all rows, in (B,) int64 arrays."""
        for start in range(0, len(self), _BLOCK):
            end = min(start + _BLOCK, len(self))
            with tf.device("CPU:0"):  # or all answers are copied to a GPU
                lengths = self.lengths(tf.range(start, end)).numpy()
            yield lengths

    def lengths(self, numbers) -> tf.Tensor:
        """The lengths of some rows, (B,) int64."""
        turns = self._turns(numbers)
        lengths = self._ids.lengths(turns.flat_values)
        if self._preprocessor is not None:
            lengths = tf.minimum(lengths, self._preprocessor.max_pieces)
        return tf.reduce_sum(turns.with_flat_values(lengths), axis=1)

    def gather(self, numbers) -> tf.RaggedTensor:
        """Some rows, (B, None) int32."""
        turns = self._turns(numbers)
        ids = self._ids.gather(turns.flat_values)
        ids = ids.with_flat_values(tf.cast(ids.flat_values, tf.int32))
        if self._preprocessor is not None:
            ids = ids[:, :-1][:, : self._preprocessor.max_pieces - 1]
            ends = tf.fill([ids.nrows(), 1], END)
            ids = tf.concat([ids, ends], axis=1)
        return turns.with_values(ids).merge_dims(1, 2)

    def padded(self, numbers, width) -> tf.Tensor:
        """Some rows as (B, width) int32, with PAD after each."""
        shape = -1, tf.cast(width, tf.int64)
        return self.gather(numbers).to_tensor(PAD, shape=shape)

    def _turns(self, numbers) -> tf.RaggedTensor:
        """The numbers of the turns of some rows, (B, None) int64."""
        numbers = tf.cast(numbers, tf.int64)
        dialogue = tf.searchsorted(
            self._answers, numbers, side="right", out_type=tf.int64
        )
        # Each dialogue has one turn that is no answer.
        answer = numbers + dialogue
        if self._preprocessor is None:
            start, end = answer, answer + 1
        else:
            first = read(self._answers, dialogue - 1) + dialogue - 1
            start = tf.maximum(first, answer - self._preprocessor.max_turns)
            end = answer
        return tf.ragged.range(start, end, row_splits_dtype=tf.int64)
