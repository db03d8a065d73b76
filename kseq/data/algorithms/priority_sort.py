"""Sorting vectors by their priorities."""

import dataclasses

import tensorflow as tf

from kseq.data.algorithms.binary_sequences import (
    asked_at_the_end,
    check_sizes,
    flag,
    random_bits,
)


@dataclasses.dataclass(frozen=True)
class PrioritySort:
    """Vectors with priorities; the targets are those of the highest, in order.

    The priority, uniform from -1 to 1, has a feature of its own. A flag follows
    the last vector.

    Args:
        given: int, vectors of a sequence.
        asked: int, vectors in the target, at most `given`.
        bits: int, of a vector.

    Raises:
        ValueError: if a size is out of range.

    Reference:
        Graves et al. 2014, arXiv:1410.5401, section 4.5.
    """

    given: int = 20
    asked: int = 16
    bits: int = 8

    def __post_init__(self):
        sizes = (self.asked, self.given)
        check_sizes(self, bits=(self.bits, self.bits), asked_and_given=sizes)

    @property
    def input_dim(self):
        return self.bits + 2

    @property
    def output_dim(self):
        return self.bits

    def sequences(self, count, seed):
        seeds = tf.random.split(seed, 2)
        shape = (count, self.given)
        vectors = random_bits((*shape, self.bits), seeds[0])
        priorities = tf.random.stateless_uniform(shape, seeds[1], -1, 1)
        _, order = tf.math.top_k(priorities, self.asked)
        targets = tf.gather(vectors, order, batch_dims=1)
        inputs = tf.concat([vectors, priorities[:, :, None]], axis=-1)
        inputs = flag(inputs, self.input_dim, self.bits + 1)
        return asked_at_the_end(inputs, targets)

    def harder(self):
        return {f"given_{self.given}": self}
