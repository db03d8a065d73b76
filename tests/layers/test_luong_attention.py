import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import LuongAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize

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
    query, memory = inputs_of(score)
    query, memory = keras.Input(query.shape[1:]), keras.Input(memory.shape[1:])
    layer = make(score)
    context, weights = layer(query, memory, return_weights=True)

    assert context.shape == layer(query, memory).shape
    assert context.shape == (None, 5, memory.shape[-1])
    assert weights.shape == (None, 5, 7)


def test_round_trip_through_a_file(score, tmp_path):
    inputs = [*inputs_of(score), np.arange(7) < [[3], [5]]]
    query, memory = (keras.Input((None, x.shape[-1])) for x in inputs[:2])
    mask = keras.Input((None,), dtype="bool")
    outputs = make(score, window=2)(
        query, memory, memory_mask=mask, return_weights=True
    )
    model = keras.Model([query, memory, mask], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    for output, again in zip(model(inputs), loaded(inputs), strict=True):
        np.testing.assert_array_equal(output, again)


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(score, dtype):
    layer, half = built(score), built(score, dtype=dtype)
    half.set_weights([weight / 4 for weight in layer.get_weights()])
    layer.set_weights(half.get_weights())
    query, memory = inputs_of(score)
    context = half(query, memory)

    assert ops.dtype(context) == dtype.removeprefix("mixed_")
    np.testing.assert_allclose(
        numpy_of(context), numpy_of(layer(query, memory)), atol=0.15
    )


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
    layer = built(score)
    query, memory = inputs_of(score)
    mask = np.random.random((2, 7)) < 0.5
    mask[:, 2] = True

    for given, admitted in ((None, True), (mask, mask[:, None])):
        found = layer(query, memory, memory_mask=given, return_weights=True)
        expected = reference(layer, query, memory, admitted)
        for output, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(output, value, atol=1e-4)


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
    layer = built(score, window=3)
    query, memory = normal(6, 2, 6), inputs_of(score)[1]
    mask = np.arange(7) < [[2], [5]]
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
        np.testing.assert_allclose(output, expected, atol=1e-5)


def test_window_is_a_cut_of_the_memory(score):
    layer, all_of_it = built(score, window=2), built(score)
    all_of_it.set_weights(layer.get_weights())
    query, memory = inputs_of(score)
    mask = np.arange(7) < np.full((2, 1), 5)

    np.testing.assert_allclose(
        layer(query, memory, memory_mask=mask),
        all_of_it(query, memory[:, 3:5]),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        layer(query, memory), all_of_it(query, memory[:, 5:]), atol=1e-5
    )


# Influence.


def test_padding_changes_nothing(score):
    layer = built(score)
    query, memory = inputs_of(score)
    padded = np.concatenate([memory, 9 + memory[:, :3]], axis=1)
    mask = np.arange(10) < np.full((2, 1), 7)
    context, weights = layer(
        query, padded, memory_mask=mask, return_weights=True
    )

    assert not numpy_of(weights)[..., 7:].any()
    np.testing.assert_allclose(context, layer(query, memory), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to(score, dtype):
    mask = np.array([[False] * 7, [True] * 7])
    context, weights = built(score, dtype=dtype)(
        *inputs_of(score), memory_mask=mask, return_weights=True
    )

    assert not numpy_of(context)[0].any()
    assert not numpy_of(weights)[0].any()
    np.testing.assert_allclose(numpy_of(weights)[1].sum(-1), 1, atol=0.02)


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
