"""Attention in blocks beside attention to everything under a mask."""

import keras
import numpy as np
import pytest

from kseq import ops
from kseq.layers import MultiHeadAttention
from tests.layers.arrays import normal, numpy_of, randomize

BACKEND = keras.backend.backend()


def masked(queries, keys, values, window, mask=None, causal=False):
    time = queries.shape[2]
    admitted = ops.window_mask(time, time, window)
    if causal:
        admitted = keras.ops.logical_and(admitted, ops.causal_mask(time, time))
    if mask is not None:
        admitted = keras.ops.logical_and(admitted, mask[:, None, None])
    energies = ops.scaled_dot_energies(queries, keys)
    return ops.weighted_sum(ops.masked_softmax(energies, admitted), values)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [0, 1, 5, 40])
@pytest.mark.parametrize("time", [1, 5, 6, 17])
def test_equals_the_masked_form(seed, time, window, causal):
    arrays = [normal(3, 2, time, 4) for _ in range(3)]
    for mask in (None, np.random.rand(3, time) < 0.5):
        found = ops.windowed_attention(*arrays, window, mask, causal)
        expected = masked(*arrays, window, mask, causal)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_positions(dtype):
    empty = keras.ops.zeros((2, 3, 0, 4), dtype=dtype)
    found = ops.windowed_attention(empty, empty, empty, 2)
    assert found.shape == (2, 3, 0, 4)
    assert keras.ops.dtype(found) == dtype


def test_sixteen_thousand_positions(seed):
    """Whose energies, all together, would have a gibibyte."""
    time, window = 16_384, 8
    queries, keys, values = (normal(1, 1, time, 4) for _ in range(3))
    found = numpy_of(ops.windowed_attention(queries, keys, values, window))
    for t in (0, 1, 5000, time - 1):
        near = slice(max(t - window, 0), t + window + 1)
        energies = keys[0, 0, near] @ queries[0, 0, t] / 2
        weights = np.exp(energies) / np.exp(energies).sum()
        expected = weights @ values[0, 0, near]
        np.testing.assert_allclose(found[0, 0, t], expected, atol=1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="needs a gradient tape")
@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_has_the_gradients_of_the_masked_form(seed, causal):
    """In a graph that serves every length."""
    import tensorflow as tf

    layer = MultiHeadAttention(num_heads=2, key_dim=4, window=3)
    layer.build((None, None, 8))
    randomize(layer)

    @tf.function(input_signature=[tf.TensorSpec((None, None, 8))])
    def gradients(query):
        found = []
        for weights in ({}, {"return_weights": True}):
            with tf.GradientTape() as tape:
                outputs = layer(query, causal=causal, **weights)
                outputs = outputs[0] if weights else outputs
                loss = tf.reduce_sum(outputs**2)
            variables = [weight.value for weight in layer.trainable_weights]
            found.append((outputs, tape.gradient(loss, variables)))
        return found

    for time in (2, 3, 10, 13):
        in_blocks, whole = gradients(normal(2, time, 8))
        for one, other in zip(
            *map(tf.nest.flatten, (in_blocks, whole)), strict=True
        ):
            scale = np.abs(other).max()
            np.testing.assert_allclose(one / scale, other / scale, atol=1e-5)
