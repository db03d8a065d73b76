import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import LocationAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of


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
    query, memory = keras.Input((5, 8)), keras.Input((None, 6))
    layer = LocationAttention(max_length=9)
    context, weights = layer(query, memory, return_weights=True)

    assert context.shape == layer(query, memory).shape == (None, 5, 6)
    assert weights.shape == (None, 5, None)


def test_round_trip_through_a_file(seed, tmp_path):
    query, memory = keras.Input((None, 8)), keras.Input((None, 6))
    mask = keras.Input((None,), dtype="bool")
    outputs = LocationAttention(max_length=4)(
        query, memory, memory_mask=mask, return_weights=True
    )
    model = keras.Model([query, memory, mask], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = [normal(2, 5, 8), normal(2, 7, 6), np.arange(7) < [[3], [5]]]

    for output, again in zip(model(inputs), loaded(inputs), strict=True):
        np.testing.assert_array_equal(output, again)


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    layer, half = built(), built(dtype=dtype)
    half.set_weights(layer.get_weights())
    query, memory = normal(2, 5, 8) / 2, normal(2, 7, 6)
    context = half(query, memory)

    assert ops.dtype(context) == dtype.removeprefix("mixed_")
    np.testing.assert_allclose(
        numpy_of(context), numpy_of(layer(query, memory)), atol=0.15
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
    layer = built(max_length)
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    mask = np.random.random((2, 7)) < 0.5
    mask[:, 2] = True

    for given, admitted in ((None, True), (mask, mask[:, None])):
        found = layer(query, memory, memory_mask=given, return_weights=True)
        expected = reference(layer, query, memory, admitted)
        for output, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(output, value, atol=1e-5)


# Two ways to one answer.


def test_hypotheses_read_one_memory(seed):
    layer = built()
    query, memory = normal(6, 2, 8), normal(2, 7, 6)
    mask = np.arange(7) < [[3], [5]]
    shared = layer(
        query,
        memory_mask=mask,
        projected_memory=layer.project_memory(memory),
        return_weights=True,
    )
    repeated = layer(
        query,
        np.repeat(memory, 3, axis=0),
        memory_mask=np.repeat(mask, 3, axis=0),
        return_weights=True,
    )

    for output, expected in zip(shared, repeated, strict=True):
        np.testing.assert_allclose(output, expected, atol=1e-6)


# Influence.


def test_weights_do_not_depend_on_the_memory(seed):
    layer, query = built(), normal(2, 5, 8)
    _, weights = layer(query, normal(2, 7, 6), return_weights=True)
    _, again = layer(query, normal(2, 7, 6), return_weights=True)

    np.testing.assert_array_equal(weights, again)


def test_padding_changes_nothing(seed):
    layer = built()
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    padded = np.concatenate([memory, normal(2, 3, 6)], axis=1)
    mask = np.arange(10) < np.full((2, 1), 7)
    context, weights = layer(
        query, padded, memory_mask=mask, return_weights=True
    )

    assert not numpy_of(weights)[..., 7:].any()
    np.testing.assert_allclose(context, layer(query, memory), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to(seed, dtype):
    mask = np.array([[False] * 7, [True] * 7])
    context, weights = built(dtype=dtype)(
        normal(2, 5, 8), normal(2, 7, 6), memory_mask=mask, return_weights=True
    )

    assert not numpy_of(context)[0].any()
    assert not numpy_of(weights)[0].any()
    np.testing.assert_allclose(numpy_of(weights)[1].sum(-1), 1, atol=0.02)


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
