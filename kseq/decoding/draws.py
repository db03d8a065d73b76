"""How the tokens of each item of a batch are drawn."""

from typing import NamedTuple

import tensorflow as tf

from kseq.decoding.sampling import Sampling


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

    @staticmethod
    def input_signature():
        """The three as inputs of a signature, a dict of `tf.TensorSpec`."""
        kinds = {
            "temperature": tf.float32,
            "top_p": tf.float32,
            "seed": tf.int64,
        }
        return {
            name: tf.TensorSpec((None,), kind, name)
            for name, kind in kinds.items()
        }

    @classmethod
    def within_range(cls, temperature, top_p, seed):
        """Draws with the nearest values that `Sampling` admits.

        A request shares its batch with others, so it cannot be refused within
        a graph. What is not a number is 1.
        """
        return cls(
            _within(temperature, 0.001, 1000.0), _within(top_p, 1e-6, 1.0), seed
        )


def sampling_like(search):
    """A `Sampling` with what a different search has in common with it."""
    names = ("length_penalty", "penalty_offset", "ctc_weight", "constraints")
    return Sampling(
        top_k=getattr(search, "top_k", 0),
        **{name: getattr(search, name) for name in names},
    )


def _within(values, least, most):
    values = tf.where(tf.math.is_nan(values), 1.0, values)
    return tf.clip_by_value(values, least, most)
