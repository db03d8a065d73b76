import keras
import numpy as np
import pytest

from kseq.layers import LocationAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.layers.attention_checks import (
    NO_MEMORY,
    check_half_precision,
    check_hypotheses,
    check_no_memory,
    check_padding,
    check_reference,
    check_round_trip,
    check_symbolic_shapes,
)


def built(max_length=9, **arguments):
    layer = LocationAttention(max_length, **arguments)
    layer(normal(2, 5, 8), normal(2, 7, 6))
    layer.set_weights([normal(8, max_length)])
    return layer


def reference(layer, query, memory, admitted=True):
    """Luong et al. 2015, equation 9, where there is memory."""
    (kernel,) = layer.get_weights()
    powers = np.zeros((*query.shape[:2], memory.shape[1]))
    reached = min(memory.shape[1], kernel.shape[1])
    powers[..., :reached] = np.exp(query @ kernel)[..., :reached]
    powers = np.where(admitted, powers, 0)
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ memory, weights


# The contract.


def test_shapes_and_weights():
    layer = LocationAttention(max_length=9)
    query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 6))
    context, weights = layer(query, memory, return_weights=True)

    assert context.shape == layer(query, memory).shape == (2, 5, 6)
    assert weights.shape == (2, 5, 7)
    assert layer.compute_output_shape((2, 5, 8), (2, 7, 6)) == (2, 5, 6)
    assert [weight.shape for weight in layer.weights] == [(8, 9)]


def test_symbolic_shapes():
    layer = LocationAttention(max_length=9)
    check_symbolic_shapes(layer, keras.Input((5, 8)), keras.Input((None, 6)))


def test_round_trip_through_a_file(seed, tmp_path):
    layer = LocationAttention(max_length=4)
    check_round_trip(layer, tmp_path, normal(2, 5, 8), normal(2, 7, 6))


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    layer, half = built(), built(dtype=dtype)
    half.set_weights(layer.get_weights())
    check_half_precision(
        dtype, half, layer, normal(2, 5, 8) / 2, normal(2, 7, 6), atol=0.15
    )


# Values.


def test_values_to_check_with_a_pencil():
    layer = LocationAttention(max_length=2)
    query, memory = np.array([[[2.0]]]), np.array([[[1.0], [3.0], [9.0]]])
    layer(query, memory)
    layer.set_weights([np.log([[1.0, 3.0**0.5]])])
    context, weights = layer(query, memory, return_weights=True)

    # powers 1 and 3; the third position is out of reach
    np.testing.assert_allclose(weights, [[[0.25, 0.75, 0.0]]], rtol=1e-6)
    np.testing.assert_allclose(context, [[[2.5]]], rtol=1e-6)


@pytest.mark.parametrize("max_length", [4, 7, 9])
def test_agrees_with_the_paper(seed, max_length):
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    check_reference(built(max_length), reference, query, memory, atol=1e-5)


# Two ways to one answer.


def test_hypotheses_read_one_memory(seed):
    query, memory = normal(6, 2, 8), normal(2, 7, 6)
    mask = np.arange(7) < [[3], [5]]
    check_hypotheses(built(), query, memory, mask, atol=1e-6)


# Influence.


def test_weights_do_not_depend_on_the_memory(seed):
    layer, query = built(), normal(2, 5, 8)
    _, weights = layer(query, normal(2, 7, 6), return_weights=True)
    _, again = layer(query, normal(2, 7, 6), return_weights=True)

    np.testing.assert_array_equal(weights, again)


def test_padding_changes_nothing(seed):
    query, memory, padding = normal(2, 5, 8), normal(2, 7, 6), normal(2, 3, 6)
    check_padding(built(), query, memory, padding, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to(seed, dtype):
    inputs = normal(2, 5, 8), normal(2, 7, 6)
    layer = built(dtype=dtype)
    check_no_memory(*layer(*inputs, NO_MEMORY, return_weights=True))


def test_the_floats_of_keras_may_have_16_bits():
    """Then its integers do, of which TensorFlow makes no range in a graph."""
    keras.config.set_floatx("float16")
    try:
        query, memory = keras.Input((5, 8)), keras.Input((7, 6))
        layer = LocationAttention(9, dtype="float16")
        model = keras.Model([query, memory], layer(query, memory))
        model.compile(jit_compile=False)
        given = [normal(2, 5, 8), normal(2, 7, 6)]
        found = numpy_of(model.predict_on_batch(given))
        np.testing.assert_allclose(found, numpy_of(model(given)), atol=0.01)
    finally:
        keras.config.set_floatx("float32")


# Errors.


def test_max_length_must_be_positive():
    with pytest.raises(ValueError, match="Received: max_length=0"):
        LocationAttention(max_length=0)
