"""Predicting bits whose distribution is drawn for each sequence."""

import dataclasses
import math

import tensorflow as tf

from kseq.data.algorithms.binary_sequences import (
    BinarySequences,
    check_sizes,
)


@dataclasses.dataclass(frozen=True)
class DynamicNgrams:
    """Bits of a random n-gram model; after each one the next is the target.

    The probability of a 1 after each context of n - 1 bits is drawn from
    Beta(1/2, 1/2) for each sequence. The first context consists of fair bits;
    the targets begin at its end.

    Args:
        length: int, bits of a sequence.
        order: int, n, at least 2.

    Raises:
        ValueError: if a size is out of range.

    Reference:
        Graves et al. 2014, arXiv:1410.5401, section 4.4; the best prediction:
        Murphy 2012, Machine Learning: a Probabilistic Perspective, cited there.
    """

    length: int = 200
    order: int = 6

    def __post_init__(self):
        check_sizes(self, least=2, order=(self.order, 20))
        check_sizes(self, least=self.order, length=(self.length, 2**20))

    input_dim = 1
    output_dim = 1

    def sequences(self, count, seed):
        seeds = tf.random.split(seed, 2)
        contexts = 2 ** (self.order - 1)
        uniform = tf.random.stateless_uniform((count, contexts), seeds[0])
        chances = tf.sin(uniform * (math.pi / 2)) ** 2  # Beta(1/2, 1/2)
        draws = tf.random.stateless_uniform((self.length, count), seeds[1])
        start = tf.cast(draws[: self.order - 1] < 0.5, tf.int32)

        def step(context, draw):
            chance = tf.gather(chances, context, batch_dims=1)
            return self._after(context, tf.cast(draw < chance, tf.int32))

        first = tf.zeros((count,), tf.int32)
        for bit in tf.unstack(start):
            first = self._after(first, bit)
        # A context ends with its newest bit.
        later = tf.scan(step, draws[self.order - 1 :], first) % 2
        bits = tf.transpose(tf.concat([start, later], axis=0))[:, :, None]
        bits = tf.cast(bits, tf.float32)
        steps = tf.range(self.length - 1)
        asked = tf.cast(steps >= self.order - 2, tf.float32)
        return BinarySequences(
            bits[:, :-1],
            bits[:, 1:],
            tf.broadcast_to(asked, (count, self.length - 1)),
        )

    def _after(self, contexts, bits):
        """The contexts (B,) of the bits that follow `bits` (B,)."""
        return (2 * contexts + bits) % 2 ** (self.order - 1)

    def best(self, sequences):
        """The best possible predictions on average.

            p(1 | context) = (ones + 1/2) / (ones + zeros + 1)

        where ones and zeros are the numbers of bits that followed the context
        so far.

        Args:
            sequences: `BinarySequences`.

        Returns:
            (B, T, 1) float32, probabilities.
        """
        bits = tf.cast(sequences.inputs[:, :, 0], tf.int32)
        following = tf.cast(sequences.targets[:, :, 0], tf.int32)
        contexts = sum(
            tf.pad(bits, [[0, 0], [age, 0]])[:, : bits.shape[1]] * 2**age
            for age in range(self.order - 1)
        )
        # What each step adds to the counts of its context.
        states = 2 ** (self.order - 1)
        asked = sequences.weights[:, :, None, None]
        added = asked * (
            tf.one_hot(contexts, states)[..., None]
            * tf.one_hot(following, 2)[:, :, None]
        )
        counts = tf.cumsum(added, axis=1, exclusive=True)  # (B, T, states, 2)
        counts = tf.gather(counts, contexts, batch_dims=2)
        ones = counts[..., 1] + 0.5
        return (ones / (tf.reduce_sum(counts, axis=-1) + 1))[:, :, None]

    def harder(self):
        return {f"length_{self.length}": self}
