"""Associative recall: finding the item that followed another."""

import dataclasses

import tensorflow as tf

from kseq.data.algorithms.binary_sequences import (
    asked_at_the_end,
    check_sizes,
    random_bits,
    random_size,
)


@dataclasses.dataclass(frozen=True)
class AssociativeRecall:
    """Items, then one of them again; the item after it is the target.

    A flag is before each item, and another one before and after the query,
    which is any item except the last.

    Args:
        items: two ints, items of a sequence.
        vectors: int, of an item.
        bits: int, of a vector.

    Raises:
        ValueError: if a size is out of range.

    Reference:
        Graves et al. 2014, arXiv:1410.5401, section 4.3.
    """

    items: tuple[int, int] = (2, 6)
    vectors: int = 3
    bits: int = 6

    def __post_init__(self):
        check_sizes(self, least=2, items=self.items)
        check_sizes(
            self,
            vectors=(self.vectors, self.vectors),
            bits=(self.bits, self.bits),
        )

    @property
    def input_dim(self):
        return self.bits + 2

    @property
    def output_dim(self):
        return self.bits

    def sequences(self, count, seed):
        seeds = tf.random.split(seed, 3)
        number = random_size(self.items, seeds[0])
        shape = (count, number, self.vectors, self.bits)
        items = random_bits(shape, seeds[1])
        chosen = tf.random.stateless_uniform(
            (count,), seeds[2], 0, number - 1, tf.int32
        )
        query = tf.gather(items, chosen, batch_dims=1)
        answer = tf.gather(items, chosen + 1, batch_dims=1)

        # Each item after its flag, (B, items, 1 + vectors, F).
        given = tf.pad(items, [[0, 0], [0, 0], [1, 0], [0, 2]])
        given += self._flags(self.vectors + 1, [0], self.bits)
        given = tf.reshape(
            given, (count, number * (self.vectors + 1), self.input_dim)
        )
        query = tf.pad(query, [[0, 0], [1, 1], [0, 2]])
        query += self._flags(
            self.vectors + 2, [0, self.vectors + 1], self.bits + 1
        )
        return asked_at_the_end(tf.concat([given, query], axis=1), answer)

    def _flags(self, steps, flagged, place):
        """1 at `place` of the flagged steps, (steps, F)."""
        at = tf.reduce_sum(tf.one_hot(flagged, steps), axis=0)
        return at[:, None] * tf.one_hot(place, self.input_dim)

    def harder(self):
        return {
            f"items_{items}": dataclasses.replace(self, items=(items, items))
            for items in (6, 10, 15, 20)
        }
