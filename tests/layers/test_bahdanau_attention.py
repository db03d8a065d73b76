import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import BahdanauAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize


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
    query, memory = keras.Input((5, 8)), keras.Input((None, 6))
    layer = BahdanauAttention(units=4)
    context, weights = layer(query, memory, return_weights=True)

    assert context.shape == layer(query, memory).shape == (None, 5, 6)
    assert weights.shape == (None, 5, None)


def test_round_trip_through_a_file(seed, tmp_path):
    query, memory = keras.Input((None, 8)), keras.Input((None, 6))
    mask = keras.Input((None,), dtype="bool")
    outputs = BahdanauAttention(units=4)(
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
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    context = half(query, memory)

    assert ops.dtype(context) == dtype.removeprefix("mixed_")
    np.testing.assert_allclose(
        numpy_of(context), numpy_of(layer(query, memory)), atol=0.15
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
    layer = built()
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    mask = np.random.random((2, 7)) < 0.5
    mask[:, 2] = True

    for given, admitted in ((None, True), (mask, mask[:, None])):
        found = layer(query, memory, memory_mask=given, return_weights=True)
        expected = reference(layer, query, memory, admitted)
        for output, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(output, value, atol=1e-5)


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
    layer, all_of_it = built(window=2), built()
    all_of_it.set_weights(layer.get_weights())
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    mask = np.arange(7) < np.full((2, 1), 5)

    np.testing.assert_allclose(
        layer(query, memory, memory_mask=mask),
        all_of_it(query, memory[:, 3:5]),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        layer(query, memory), all_of_it(query, memory[:, 5:]), atol=1e-5
    )


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
    layer = built(dtype=dtype)
    mask = np.array([[False] * 7, [True] * 7])
    context, weights = layer(
        normal(2, 5, 8), normal(2, 7, 6), memory_mask=mask, return_weights=True
    )

    assert not numpy_of(context)[0].any()
    assert not numpy_of(weights)[0].any()
    np.testing.assert_allclose(numpy_of(weights)[1].sum(-1), 1, atol=0.02)


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
