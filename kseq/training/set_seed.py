"""Reproducible training."""

import keras
import tensorflow as tf


def set_seed(seed, deterministic=False):
    """Seeds all random numbers of this process.

    On one CPU that is enough: the same command gives the same weights, bit for
    bit. GPU kernels may add in any order unless `deterministic` is asked for;
    it stays in force until the process ends.

    Args:
        seed: int.
        deterministic: whether every op has to give the same bits each time.
            Where TensorFlow has no such kernel, the op raises an error.

    Reference:
        `tf.config.experimental.enable_op_determinism`.
    """
    keras.utils.set_random_seed(seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
