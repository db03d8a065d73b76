"""Copying a sequence several times."""

import dataclasses

import tensorflow as tf

from kseq.data.algorithms.binary_sequences import (
    asked_at_the_end,
    check_sizes,
    random_bits,
    random_size,
)


@dataclasses.dataclass(frozen=True)
class RepeatCopy:
    """Random vectors and a number; the target repeats them that many times.

    The number is that of the step after the vectors, with a flag. It is
    normalized: over the numbers of training its mean is 0 and its variance 1.
    After the last copy the target is an end marker, a separate bit.

    Args:
        length: two ints, vectors of a sequence.
        repeats: two ints, copies in the target.
        bits: int, of a vector.
        trained_repeats: two ints, the numbers for which it is normalized.

    Raises:
        ValueError: if a size is out of range.

    Reference:
        Graves et al. 2014, arXiv:1410.5401, section 4.2.
    """

    length: tuple[int, int] = (1, 10)
    repeats: tuple[int, int] = (1, 10)
    bits: int = 8
    trained_repeats: tuple[int, int] = (1, 10)

    def __post_init__(self):
        check_sizes(
            self,
            length=self.length,
            repeats=self.repeats,
            bits=(self.bits, self.bits),
            trained_repeats=self.trained_repeats,
        )

    @property
    def input_dim(self):
        return self.bits + 2

    @property
    def output_dim(self):
        return self.bits + 1

    def sequences(self, count, seed):
        seeds = tf.random.split(seed, 3)
        length = random_size(self.length, seeds[0])
        repeats = random_size(self.repeats, seeds[1])
        vectors = random_bits((count, length, self.bits), seeds[2])

        number = self._normalized(tf.cast(repeats, tf.float32))
        asking = tf.stack([1.0, number])
        asking = tf.pad(asking, [[self.bits, 0]])[None, None]
        asking = tf.broadcast_to(asking, (count, 1, self.input_dim))
        given = tf.pad(vectors, [[0, 0], [0, 0], [0, 2]])
        copies = tf.tile(vectors, [1, repeats, 1])
        end = tf.pad(tf.ones((count, 1, 1)), [[0, 0], [0, 0], [self.bits, 0]])
        targets = tf.concat(
            [tf.pad(copies, [[0, 0], [0, 0], [0, 1]]), end], axis=1
        )
        return asked_at_the_end(tf.concat([given, asking], axis=1), targets)

    def _normalized(self, number):
        first, last = self.trained_repeats
        deviation = ((last - first + 1) ** 2 - 1) / 12
        return (number - (first + last) / 2) / max(deviation, 1e-6) ** 0.5

    def harder(self):
        sizes = {
            "length_10_repeats_10": (10, 10),
            "length_20_repeats_10": (20, 10),
            "length_10_repeats_20": (10, 20),
        }
        return {
            name: dataclasses.replace(
                self, length=(length, length), repeats=(repeats, repeats)
            )
            for name, (length, repeats) in sizes.items()
        }
