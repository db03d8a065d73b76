"""Copying a sequence."""

import dataclasses

import tensorflow as tf

from kseq.data.algorithms.binary_sequences import (
    asked_at_the_end,
    check_sizes,
    flag,
    random_bits,
    random_size,
)


@dataclasses.dataclass(frozen=True)
class CopySequence:
    """Random binary vectors, then a flag; the targets are the same vectors.

    Args:
        length: two ints, vectors of a sequence.
        bits: int, of a vector.

    Raises:
        ValueError: if a size is out of range.

    Example:
        >>> copy = CopySequence(length=(2, 2), bits=3)
        >>> inputs, targets, weights = copy.sequences(1, (1, 2))
        >>> bool(np.all(inputs[:, :2, :3] == targets[:, 3:]))
        True
        >>> weights[0].numpy()
        array([0., 0., 0., 1., 1.], dtype=float32)

    Reference:
        Graves et al. 2014, arXiv:1410.5401, section 4.1.
    """

    length: tuple[int, int] = (1, 20)
    bits: int = 8

    def __post_init__(self):
        check_sizes(self, length=self.length, bits=(self.bits, self.bits))

    @property
    def input_dim(self):
        return self.bits + 1

    @property
    def output_dim(self):
        return self.bits

    def sequences(self, count, seed):
        seeds = tf.random.split(seed, 2)
        length = random_size(self.length, seeds[0])
        vectors = random_bits((count, length, self.bits), seeds[1])
        inputs = flag(vectors, self.input_dim, self.bits)
        return asked_at_the_end(inputs, vectors)

    def harder(self):
        return {
            f"length_{length}": dataclasses.replace(
                self, length=(length, length)
            )
            for length in (10, 20, 30, 50, 120)
        }
