"""Sequences of binary vectors, and how they are drawn."""

from typing import Any, NamedTuple

import tensorflow as tf


class BinarySequences(NamedTuple):
    """Sequences of vectors, and the target bits.

    Args:
        inputs: (B, T, F) float32.
        targets: (B, T, D) float32, 0 or 1.
        weights: (B, T) float32, 1 where there are targets, else 0.
    """

    inputs: Any
    targets: Any
    weights: Any


def random_bits(shape, seed):
    """Independent bits, each 0 or 1 with probability 1/2, float32."""
    bits = tf.random.stateless_uniform(shape, seed, 0, 2, tf.int32)
    return tf.cast(bits, tf.float32)


def random_size(sizes, seed):
    """One of the ints of a pair of the smallest and the largest, () int32."""
    smallest, largest = sizes
    return tf.random.stateless_uniform(
        (), seed, smallest, largest + 1, tf.int32
    )


def asked_at_the_end(inputs, targets):
    """Sequences whose targets follow their inputs.

    Args:
        inputs: (B, S, F) float32.
        targets: (B, T, D) float32.

    Returns:
        `BinarySequences` of S + T steps: zeros follow the inputs.
    """
    given, asked = tf.shape(inputs)[1], tf.shape(targets)[1]
    weights = tf.concat([tf.zeros(given), tf.ones(asked)], axis=0)
    return BinarySequences(
        tf.pad(inputs, [[0, 0], [0, asked], [0, 0]]),
        tf.pad(targets, [[0, 0], [given, 0], [0, 0]]),
        tf.broadcast_to(weights, (tf.shape(inputs)[0], given + asked)),
    )


def flag(inputs, dims, place):
    """Adds a step after (B, S, F), with a 1 at `place`; (B, S + 1, dims).

    `dims` is at least F; zeros are added.
    """
    missing = dims - inputs.shape[-1]
    inputs = tf.pad(inputs, [[0, 0], [0, 0], [0, missing]])
    shape = (tf.shape(inputs)[0], 1, dims)
    end = tf.broadcast_to(tf.one_hot(place, dims), shape)
    return tf.concat([inputs, end], axis=1)


def check_sizes(task, least=1, **sizes):
    """Raises ValueError unless each size is a pair in order, from `least`."""
    for name, pair in sizes.items():
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        are_ints = is_pair and all(type(x) is int for x in pair)
        if not are_ints or not least <= pair[0] <= pair[1]:
            raise ValueError(
                f"{name} of {type(task).__name__} must be two ints in order, "
                f"at least {least}. Received: {name}={pair!r}"
            )
