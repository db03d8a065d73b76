import keras
import numpy as np
import pytest

from kseq.layers import LuongAttention
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

SCORES = ("dot", "scaled_dot", "general", "concat")


def make(score, **arguments):
    units = 4 if score == "concat" else None
    return LuongAttention(score, units=units, **arguments)


def inputs_of(score):
    return normal(2, 5, 6), normal(2, 7, 6 if "dot" in score else 8)


def built(score, **arguments):
    layer = make(score, **arguments)
    layer(*inputs_of(score))
    layer.set_weights([normal(*weight.shape) for weight in layer.weights])
    return layer


def reference(layer, query, memory, admitted=True):
    """Luong et al. 2015, section 3.1, one pair after the other."""
    weights = layer.get_weights()
    energy = {
        "dot": lambda q, k: q @ k,
        "scaled_dot": lambda q, k: q @ k / len(q) ** 0.5,
        "general": lambda q, k: q @ weights[0].T @ k,
        "concat": lambda q, k: (
            weights[0]
            @ np.tanh(np.vstack(weights[1:]).T @ np.concatenate([q, k]))
        ),
    }[layer.score]
    energies = np.zeros((*query.shape[:2], memory.shape[1]))
    for b, t, s in np.ndindex(energies.shape):
        energies[b, t, s] = energy(query[b, t], memory[b, s])
    powers = np.where(admitted, np.exp(energies), 0)
    weights_of_pairs = powers / powers.sum(axis=-1, keepdims=True)
    return weights_of_pairs @ memory, weights_of_pairs


@pytest.fixture(params=SCORES)
def score(request, seed):
    return request.param


# The contract.


def test_shapes_and_weights(score):
    layer = make(score)
    query, memory = inputs_of(score)
    context, weights = layer(query, memory, return_weights=True)

    assert context.shape == (2, 5, memory.shape[-1])
    assert layer(query, memory).shape == context.shape
    assert weights.shape == (2, 5, 7)
    assert (
        layer.compute_output_shape(query.shape, memory.shape) == context.shape
    )
    assert {
        weight.path.split("/", 1)[1]: weight.shape for weight in layer.weights
    } == {
        "dot": {},
        "scaled_dot": {},
        "general": {"memory_projection/kernel": (8, 6)},
        "concat": {
            "scale": (4,),
            "query_projection/kernel": (6, 4),
            "memory_projection/kernel": (8, 4),
        },
    }[score]


def test_symbolic_shapes(score):
    inputs = [keras.Input(x.shape[1:]) for x in inputs_of(score)]
    check_symbolic_shapes(make(score), *inputs)


def test_round_trip_through_a_file(score, tmp_path):
    check_round_trip(make(score, window=2), tmp_path, *inputs_of(score))


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(score, dtype):
    layer, half = built(score), built(score, dtype=dtype)
    half.set_weights([weight / 4 for weight in layer.get_weights()])
    layer.set_weights(half.get_weights())
    check_half_precision(dtype, half, layer, *inputs_of(score), atol=0.15)


# Values.


def test_worked_example():
    columns = np.array(
        [[0.7, -0.6, 0.2, -0.8], [0.3, 0.5, -0.7, -0.5], [-0.6, 0.1, 0.6, 0.4]]
    )
    query, memory = np.array([[[0.4, 0.1, -0.3]]]), columns.T[None]
    context, weights = LuongAttention("dot")(query, memory, return_weights=True)

    np.testing.assert_allclose(
        query @ columns, [[[0.49, -0.22, -0.17, -0.49]]], atol=1e-9
    )
    # 0.4195, which the example rounds up
    np.testing.assert_allclose(
        weights, [[[0.420, 0.206, 0.217, 0.157]]], atol=5.1e-4
    )
    np.testing.assert_allclose(context, [[[0.087, -0.002, -0.038]]], atol=5e-4)


def test_agrees_with_the_paper(score):
    check_reference(built(score), reference, *inputs_of(score), atol=1e-4)


def test_symmetric(seed):
    layer = LuongAttention("general", units=4, symmetric=True)
    query, memory = normal(2, 5, 6), normal(2, 7, 6)
    layer(query, memory)
    assert {w.path.split("/", 1)[1] for w in layer.weights} == {
        "scale",
        "memory_projection/kernel",
    }
    np.testing.assert_array_equal(layer.scale, np.ones(4))
    randomize(layer)
    scale, kernel = layer.get_weights()
    matrix = kernel @ np.diag(scale) @ kernel.T
    energy = query @ matrix @ memory.swapaxes(1, 2)
    powers = np.exp(energy - energy.max(axis=-1, keepdims=True))
    expected = powers / powers.sum(axis=-1, keepdims=True)

    _, weights = layer(query, memory, return_weights=True)
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_bias_initializer_and_constraint(seed):
    layer = LuongAttention(
        "general",
        use_bias=True,
        kernel_initializer=keras.initializers.Constant(2.0),
        kernel_constraint="non_neg",
    )
    query, memory = normal(2, 5, 6), normal(2, 7, 8)
    layer(query, memory)
    dense = layer.memory_projection
    np.testing.assert_array_equal(numpy_of(dense.kernel), np.full((8, 6), 2))
    assert isinstance(dense.kernel.constraint, keras.constraints.NonNeg)
    randomize(layer)
    kernel, bias = layer.get_weights()
    keys = memory @ kernel + bias
    powers = np.exp(query @ keys.swapaxes(1, 2))

    _, weights = layer(query, memory, return_weights=True)
    expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights, expected, atol=1e-4)
    again = LuongAttention.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


# Two ways to one answer.


def test_hypotheses_read_one_memory(score):
    query, memory = normal(6, 2, 6), inputs_of(score)[1]
    mask = np.arange(7) < [[2], [5]]
    check_hypotheses(built(score, window=3), query, memory, mask, atol=1e-5)


def test_window_is_a_cut_of_the_memory(score):
    check_window(built(score, window=2), built(score), *inputs_of(score))


# Influence.


def test_padding_changes_nothing(score):
    query, memory = inputs_of(score)
    check_padding(built(score), query, memory, 9 + memory[:, :3], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to(score, dtype):
    layer = built(score, dtype=dtype)
    inputs = inputs_of(score)
    check_no_memory(*layer(*inputs, NO_MEMORY, return_weights=True))


# Errors.


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"score": "cosine"}, "Received: score='cosine'"),
        ({"score": "concat"}, "Received: score='concat', units=None"),
        ({"score": "dot", "units": 3}, "Received: score='dot', units=3"),
        ({"score": "concat", "units": 0}, "Received: units=0"),
        ({"window": 0}, "Received: window=0"),
        ({"window": 1.5}, "Received: window=1.5"),
        ({"symmetric": True, "units": 3}, "symmetric=True"),
        ({"score": "general", "symmetric": True}, "units=None"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        LuongAttention(**arguments)


def test_a_projected_memory_alone_does_not_build_weights():
    query, memory = np.ones((2, 5, 4)), np.ones((2, 7, 4))
    layer = LuongAttention("general")
    with pytest.raises(ValueError, match="with memory before projected_mem"):
        layer(query, projected_memory=(memory, memory))
    found = LuongAttention("dot")(query, projected_memory=(memory, memory))
    np.testing.assert_array_equal(found, query)


@pytest.mark.parametrize("score", ["dot", "scaled_dot"])
def test_a_dot_product_needs_one_size(score):
    with pytest.raises(ValueError, match="the same number of features"):
        LuongAttention(score)(np.ones((2, 5, 6)), np.ones((2, 7, 8)))
