"""How the tokens of each item of a batch are drawn."""

from typing import NamedTuple

import tensorflow as tf


class Draws(NamedTuple):
    """Temperature, top p and seed of each item, in place of `Sampling`'s.

    Args:
        temperature: (B,) float32.
        top_p: (B,) float32.
        seed: (B,) int64.
    """

    temperature: tf.Tensor
    top_p: tf.Tensor
    seed: tf.Tensor

    @classmethod
    def within_range(cls, temperature, top_p, seed):
        """Draws with the nearest values that `Sampling` admits.

        A request shares its batch with others, so it cannot be refused within
        a graph. What is not a number is 1.
        """
        return cls(
            _within(temperature, 0.001, 1000.0), _within(top_p, 1e-6, 1.0), seed
        )


def _within(values, least, most):
    values = tf.where(tf.math.is_nan(values), 1.0, values)
    return tf.clip_by_value(values, least, most)
