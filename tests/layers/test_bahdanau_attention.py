import keras
import numpy as np
import pytest

from kseq.layers import BahdanauAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize
from tests.layers.attention_checks import (
    NO_MEMORY,
    check_half_precision,
    check_hypotheses,
    check_no_memory,
    check_padding,
    check_reference,
    check_round_trip,
    check_symbolic_shapes,
    check_window,
)


def built(units=4, **arguments):
    layer = BahdanauAttention(units, **arguments)
    layer(normal(2, 5, 8), normal(2, 7, 6))
    layer.set_weights([normal(*weight.shape) for weight in layer.weights])
    return layer


def reference(layer, query, memory, admitted=True):
    """Bahdanau et al. 2015, section A.1.2, one pair after the other."""
    scale, query_kernel, memory_kernel = layer.get_weights()
    energies = np.zeros((*query.shape[:2], memory.shape[1]))
    for b, t, s in np.ndindex(energies.shape):
        hidden = query[b, t] @ query_kernel + memory[b, s] @ memory_kernel
        energies[b, t, s] = scale @ np.tanh(hidden)
    powers = np.where(admitted, np.exp(energies), 0)
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ memory, weights


# The contract.


def test_shapes_and_weights():
    layer = BahdanauAttention(units=4)
    query, memory = np.ones((2, 5, 8)), np.ones((2, 7, 6))
    context, weights = layer(query, memory, return_weights=True)

    assert context.shape == layer(query, memory).shape == (2, 5, 6)
    assert weights.shape == (2, 5, 7)
    assert layer.compute_output_shape((2, 5, 8), (2, 7, 6)) == (2, 5, 6)
    assert {
        weight.path.split("/", 1)[1]: weight.shape for weight in layer.weights
    } == {
        "scale": (4,),
        "query_projection/kernel": (8, 4),
        "memory_projection/kernel": (6, 4),
    }


def test_symbolic_shapes():
    layer = BahdanauAttention(units=4)
    check_symbolic_shapes(layer, keras.Input((5, 8)), keras.Input((None, 6)))


def test_round_trip_through_a_file(seed, tmp_path):
    layer = BahdanauAttention(units=4)
    check_round_trip(layer, tmp_path, normal(2, 5, 8), normal(2, 7, 6))


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    layer, half = built(), built(dtype=dtype)
    half.set_weights(layer.get_weights())
    check_half_precision(
        dtype, half, layer, normal(2, 5, 8), normal(2, 7, 6), atol=0.15
    )


# Values.


def test_values_to_check_with_a_pencil():
    layer = BahdanauAttention(units=1)
    query, memory = np.array([[[1.0]]]), np.array([[[-1.0], [0.0]]])
    layer(query, memory)
    layer.set_weights([np.array(x) for x in ([2.0], [[1.0]], [[1.0]])])
    context, weights = layer(query, memory, return_weights=True)

    # energies 2 tanh(1 - 1) = 0 and 2 tanh(1 + 0) = 1.5232
    np.testing.assert_allclose(weights, [[[0.1790, 0.8210]]], atol=1e-4)
    np.testing.assert_allclose(context, [[[-0.1790]]], atol=1e-4)


def test_agrees_with_the_paper(seed):
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    check_reference(built(), reference, query, memory, atol=1e-5)


def test_shared_projection_and_biases(seed):
    layer = BahdanauAttention(4, shared=True, use_bias=True)
    query, memory = normal(2, 5, 6), normal(2, 7, 6)
    layer(query, memory)
    randomize(layer)
    scale, kernel, bias = layer.get_weights()
    both = (query @ kernel + bias)[:, :, None] + (memory @ kernel + bias)[
        :, None
    ]
    energies = np.tanh(both) @ scale
    powers = np.exp(energies)
    expected = powers / powers.sum(axis=-1, keepdims=True)

    _, weights = layer(query, memory, return_weights=True)
    np.testing.assert_allclose(weights, expected, atol=1e-5)


@pytest.mark.parametrize("initializer", ["zeros", keras.initializers.Zeros()])
def test_initializer_and_constraint(initializer):
    layer = BahdanauAttention(
        4,
        use_bias=True,
        kernel_initializer=initializer,
        kernel_constraint=keras.constraints.MaxNorm(2),
    )
    again = BahdanauAttention.from_config(layer.get_config())
    for made in (layer, again):
        made(np.ones((2, 5, 8)), np.ones((2, 7, 6)))
        for dense in (made.query_projection, made.memory_projection):
            assert not numpy_of(dense.kernel).any()
            assert dense.kernel.constraint.max_value == 2
            assert dense.use_bias
    assert again.get_config() == layer.get_config()


def test_projections_start_from_different_values():
    initializer = keras.initializers.RandomNormal()
    layer = BahdanauAttention(4, kernel_initializer=initializer)
    layer(np.ones((2, 5, 6)), np.ones((2, 7, 6)))
    _, query_kernel, memory_kernel = layer.get_weights()

    assert (query_kernel != memory_kernel).all()


# Two ways to one answer.


def test_window_is_a_cut_of_the_memory(seed):
    check_window(built(window=2), built(), normal(2, 5, 8), normal(2, 7, 6))


def test_hypotheses_read_one_memory(seed):
    query, memory = normal(6, 2, 8), normal(2, 7, 6)
    mask = np.arange(7) < [[3], [5]]
    check_hypotheses(built(), query, memory, mask, atol=1e-6)


# Influence.


def test_padding_changes_nothing(seed):
    query, memory, padding = normal(2, 5, 8), normal(2, 7, 6), normal(2, 3, 6)
    check_padding(built(), query, memory, padding, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to(seed, dtype):
    inputs = normal(2, 5, 8), normal(2, 7, 6)
    layer = built(dtype=dtype)
    check_no_memory(*layer(*inputs, NO_MEMORY, return_weights=True))


# Errors.


@pytest.mark.parametrize(
    "arguments", [{"units": 0}, {"units": True}, {"units": 3, "window": 1.5}]
)
def test_arguments_that_do_not_fit(arguments):
    with pytest.raises(ValueError, match="Received: "):
        BahdanauAttention(**arguments)


def test_a_shared_projection_needs_one_size():
    with pytest.raises(ValueError, match="the same number of features"):
        BahdanauAttention(3, shared=True)(
            np.ones((2, 5, 6)), np.ones((2, 7, 8))
        )
