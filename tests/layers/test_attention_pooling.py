import keras
import numpy as np
import pytest

from kseq.layers import AttentionPooling
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.layers.attention_checks import (
    NO_MEMORY,
    check_half_precision,
    check_no_memory,
    check_round_trip,
)


def built(**arguments):
    layer = AttentionPooling(5, **arguments)
    layer.build((None, None, 8))
    layer.set_weights([normal(8, 5), normal(5), normal(5, 1)])
    return layer


def reference(layer, inputs, mask):
    """Yang et al. 2016, equations 5 to 7, of real positions."""
    kernel, bias, query = layer.get_weights()
    powers = np.exp(np.tanh(inputs @ kernel + bias) @ query[:, 0]) * mask
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return (weights[..., None] * inputs).sum(axis=-2), weights


# The contract.


def test_shapes_and_weights():
    layer = AttentionPooling(5)
    inputs = np.ones((2, 3, 7, 8))
    output, weights = layer(inputs, return_weights=True)

    assert output.shape == layer(inputs).shape == (2, 3, 8)
    assert weights.shape == (2, 3, 7)
    assert layer.compute_output_shape((2, 3, 7, 8)) == (2, 3, 8)
    assert [weight.shape for weight in layer.weights] == [(8, 5), (5,), (5, 1)]


def test_symbolic_shapes():
    inputs = keras.Input((None, None, 8))
    output, weights = AttentionPooling(5)(inputs, return_weights=True)

    assert output.shape == (None, None, 8)
    assert weights.shape == (None, None, None)


def test_round_trip_through_a_file(seed, tmp_path):
    check_round_trip(AttentionPooling(5), tmp_path, normal(2, 7, 8))


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    layer, half = built(), built(dtype=dtype)
    half.set_weights(layer.get_weights())
    check_half_precision(dtype, half, layer, normal(2, 7, 8), atol=0.1)


# Values.


def test_values_to_check_with_a_pencil():
    layer = AttentionPooling(1)
    inputs = np.array([[[0.0], [np.arctanh(0.5)], [9.0]]])
    layer.build(inputs.shape)
    layer.set_weights([np.ones((1, 1)), np.zeros(1), np.log([[9.0]])])
    mask = np.array([[True, True, False]])
    output, weights = layer(inputs, inputs_mask=mask, return_weights=True)

    # powers 1 and 3; the third position is not real
    np.testing.assert_allclose(weights, [[0.25, 0.75, 0]], rtol=1e-5)
    np.testing.assert_allclose(output, [[0.75 * np.arctanh(0.5)]], rtol=1e-5)


def test_agrees_with_the_paper(seed):
    layer, inputs = built(), normal(2, 3, 7, 8)
    mask = np.random.random((2, 3, 7)) < 0.5
    mask[..., 2] = True

    found = layer(inputs, inputs_mask=mask, return_weights=True)
    for output, value in zip(
        found, reference(layer, inputs, mask), strict=True
    ):
        np.testing.assert_allclose(output, value, atol=1e-5)


# Influence.


def test_padding_changes_nothing(seed):
    layer, inputs = built(), normal(2, 7, 8)
    padded = np.concatenate([inputs, normal(2, 3, 8)], axis=1)
    mask = np.arange(10) < np.full((2, 1), 7)
    output, weights = layer(padded, inputs_mask=mask, return_weights=True)

    assert not numpy_of(weights)[:, 7:].any()
    np.testing.assert_allclose(output, layer(inputs), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to(seed, dtype):
    layer, inputs = built(dtype=dtype), normal(2, 7, 8)
    check_no_memory(*layer(inputs, NO_MEMORY, return_weights=True))


# Errors.


def test_units_must_be_positive():
    with pytest.raises(ValueError, match="Received: units=0"):
        AttentionPooling(0)
