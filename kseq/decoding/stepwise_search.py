"""A search as its steps, for one loop over all or for a stream."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.loops import (
    INTEGER,
    decode_until_finished,
    map_micro_batches,
    while_loop,
)


class StepwiseSearch(NamedTuple):
    """A search of a model: where it starts, and the step that it repeats.

    Its functions belong to the graph in which they were made.

    Args:
        start: callable `Items` -> search and `Memory`, nests of tensors with
            the same number of rows for each item.
        advance: callable (search, memory) -> search, after one more token.
        is_done: callable search -> (B,) bool.
        answers: callable search -> ids (B, N, T) int64 and numbers (B, N)
            float32 of the answers so far.
        contenders: callable search -> ids (B, C, T) int64 of all hypotheses,
            and (B, C) bool, which of them may still become the best answer.
        hypotheses: callable of those ids and numbers -> `Hypotheses`.
        num_answers: int, N.
        is_splittable: bool, whether `advance` may see a part of the batch.
    """

    start: Callable
    advance: Callable
    is_done: Callable
    answers: Callable
    contenders: Callable
    hypotheses: Callable
    num_answers: int
    is_splittable: bool

    def run(self, items) -> Hypotheses:
        """The answers to all items."""

        def search(items):
            start, memory = self.start(items)
            return decode_until_finished(
                self.advance,
                start,
                memory,
                is_done=self.is_done,
                answers=self.answers,
                is_splittable=self.is_splittable,
            )

        found = map_micro_batches(
            search, items, self.num_answers, self.is_splittable
        )
        return self.hypotheses(*found)

    def until_more_is_settled(self, search, memory, more):
        """Advances until an item has more settled tokens, or all are done.

        Args:
            search: nest of tensors, of `start` or of an earlier call.
            memory: of `start`.
            more: (B,) int, how many more tokens of an item are enough.

        Returns:
            search.
        """
        enough = self._num_settled(search) + tf.cast(more, INTEGER)

        def is_waiting(search):
            has_more = tf.reduce_any(self._num_settled(search) >= enough)
            return ~(has_more | tf.reduce_all(self.is_done(search)))

        return while_loop(
            is_waiting, lambda search: self.advance(search, memory), search
        )

    def settled(self, search):
        """The tokens that no later step changes, (B, T) int64, then PAD.

        They begin every hypothesis that may still become the best answer. Of
        an item that is done they are the answer.
        """
        best = self.hypotheses(*self.answers(search)).ids[:, 0]
        common = common_prefix(*self.contenders(search))
        done = self.is_done(search)[:, None]
        return tf.where(done, tf.cast(best, INTEGER), common)

    def _num_settled(self, search):
        settled = self.settled(search)
        return tf.math.count_nonzero(settled != PAD, axis=1)


def common_prefix(ids, counts):
    """The tokens with which several sequences begin.

    Args:
        ids: (B, C, T) int64.
        counts: (B, C) bool, which sequences of an item count.

    Returns:
        (B, T) int64, PAD after those that all of them share; of an item for
        which none counts, all PAD.

    Example:
        >>> ids = tf.constant([[[4, 5, 6], [4, 5, 7], [8, 5, 6]]], tf.int64)
        >>> common_prefix(ids, tf.constant([[True, True, False]])).numpy()
        array([[4, 5, 0]])
    """
    first = tf.argmax(tf.cast(counts, tf.int32), axis=1)
    first = tf.gather(ids, first, batch_dims=1)  # (B, T)
    is_equal = (ids == first[:, None]) | ~counts[:, :, None]
    is_equal = tf.reduce_all(is_equal, axis=1)
    is_equal &= tf.reduce_any(counts, axis=1, keepdims=True)
    different = tf.cumsum(tf.cast(~is_equal, INTEGER), axis=1)
    return tf.where(different == 0, first, tf.constant(PAD, INTEGER))
