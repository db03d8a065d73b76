import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import MultiHeadAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.layers.attention_checks import check_hypotheses


def inputs_of(kind):
    return [normal(2, 5, 8)] + [normal(2, 7, 6)] * (kind == "cross")


def built(inputs, **arguments):
    layer = MultiHeadAttention(num_heads=3, key_dim=4, **arguments)
    layer(*inputs)
    layer.set_weights([normal(*w.shape) / 2 for w in layer.weights])
    return layer


def reference(layer, query, memory=None, admitted=True):
    """Vaswani et al. 2017, section 3.2.2, one head after the other."""
    *projections, output_kernel, output_bias = layer.get_weights()
    if memory is None:
        kernel, bias = projections
        q, k, v = np.split(query @ kernel + bias, 3, axis=-1)
    else:
        q = query @ projections[0] + projections[1]
        k, v = np.split(memory @ projections[2] + projections[3], 2, axis=-1)

    heads = []
    for i in range(layer.num_heads):
        head = np.s_[..., i * layer.key_dim : (i + 1) * layer.key_dim]
        energies = q[head] @ k[head].swapaxes(1, 2) / layer.key_dim**0.5
        powers = np.where(admitted, np.exp(energies), 0)
        weights = powers / powers.sum(axis=-1, keepdims=True)
        heads.append(weights @ v[head])
    return np.concatenate(heads, axis=-1) @ output_kernel + output_bias


@pytest.fixture(params=["self", "cross"])
def kind(request, seed):
    return request.param


# The contract.


def test_shapes_and_weights(kind):
    inputs = inputs_of(kind)
    layer = MultiHeadAttention(num_heads=3, key_dim=4)
    output, weights = layer(*inputs, return_weights=True)
    shapes = {
        weight.path.split("/", 1)[1]: weight.shape for weight in layer.weights
    }
    projections = {
        "self": {
            "query_key_value/kernel": (8, 36),
            "query_key_value/bias": (36,),
        },
        "cross": {
            "query/kernel": (8, 12),
            "query/bias": (12,),
            "key_value/kernel": (6, 24),
            "key_value/bias": (24,),
        },
    }[kind]

    assert output.shape == (2, 5, 8)
    assert weights.shape == (2, 3, 5, inputs[-1].shape[1])
    assert shapes == projections | {
        "projection/kernel": (12, 8),
        "projection/bias": (8,),
    }
    assert layer.compute_output_shape(*(x.shape for x in inputs)) == (2, 5, 8)


def test_symbolic_shapes(kind):
    inputs = [keras.Input((5, 8)), keras.Input((7, 6))][: 1 + (kind == "cross")]
    layer = MultiHeadAttention(num_heads=3, key_dim=4)
    output, weights = layer(*inputs, return_weights=True)

    assert output.shape == (None, 5, 8)
    assert weights.shape == (None, 3, 5, inputs[-1].shape[1])
    assert layer(*inputs).shape == (None, 5, 8)


def test_symbolic_shape_of_the_cache(seed):
    past = keras.Input((3, None, 4))
    output, cache = MultiHeadAttention(num_heads=3, key_dim=4)(
        keras.Input((5, 8)), cache={"key": past, "value": past}
    )

    assert output.shape == (None, 5, 8)
    assert cache["key"].shape == cache["value"].shape == (None, 3, None, 4)


def test_round_trip_through_a_file(kind, tmp_path):
    inputs = inputs_of(kind)
    mask = np.arange(inputs[-1].shape[1]) < [[3], [5]]
    symbolic = [keras.Input((None, x.shape[-1])) for x in inputs]
    symbolic_mask = keras.Input((None,), dtype="bool")
    layer = MultiHeadAttention(num_heads=3, key_dim=4, dropout=0.1)
    model = keras.Model(
        [*symbolic, symbolic_mask],
        layer(*symbolic, memory_mask=symbolic_mask, return_weights=True),
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    assert loaded.layers[-1].get_config() == layer.get_config()
    for ours, theirs in zip(
        model([*inputs, mask]), loaded([*inputs, mask]), strict=True
    ):
        np.testing.assert_array_equal(numpy_of(ours), numpy_of(theirs))


@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_half_precision(kind, policy):
    inputs = inputs_of(kind)
    mask = np.arange(inputs[-1].shape[1]) < [[0], [4]]
    exact = built(inputs)
    half = built(inputs, dtype=policy)
    half.set_weights(exact.get_weights())
    output, weights = half(*inputs, memory_mask=mask, return_weights=True)

    assert output.dtype == weights.dtype == half.compute_dtype
    np.testing.assert_allclose(
        numpy_of(output),
        numpy_of(exact(*inputs, memory_mask=mask)),
        atol=0.1 if policy == "mixed_bfloat16" else 0.02,
    )


def test_dropout_is_for_training(kind):
    inputs = inputs_of(kind)
    layer = built(inputs, dropout=0.5)
    plain = built(inputs)
    plain.set_weights(layer.get_weights())

    np.testing.assert_array_equal(layer(*inputs), plain(*inputs))
    assert np.any(numpy_of(layer(*inputs, training=True) - plain(*inputs)))


# Values.


def test_worked_example_of_scaled_self_attention():
    p = np.array([[1, 0], [0, 2], [1, 0]], "float32")  # columns are time
    w_query = np.array([[1, 1, 0], [0, 0, 1]], "float32")
    w_key = np.array([[0, 1, 0], [1, 0, 1]], "float32")
    w_value = np.array([[0, 1, 1], [1, 0, 1]], "float32")
    layer = MultiHeadAttention(num_heads=1, key_dim=2)
    layer.build((1, 2, 3))
    kernel = np.concatenate([w_query, w_key, w_value]).T
    layer.set_weights([kernel, np.zeros(6), np.eye(2, 3), np.zeros(3)])
    output, weights = layer(p.T[None], return_weights=True)

    np.testing.assert_allclose(
        numpy_of(weights)[0, 0].T, [[0.5, 0.06], [0.5, 0.94]], atol=5e-3
    )
    np.testing.assert_allclose(
        numpy_of(output)[0].T, [[1.5, 1.94], [1, 0.11], [0, 0]], atol=5e-3
    )


@pytest.mark.parametrize("policy", ["float32", *HALF_POLICIES])
def test_nothing_to_attend_to_gives_a_context_of_zero(kind, policy):
    inputs = inputs_of(kind)
    layer = built(inputs, dtype=policy)
    mask = np.zeros((2, inputs[-1].shape[1]), bool)
    output, weights = layer(*inputs, memory_mask=mask, return_weights=True)
    bias = ops.cast(layer.projection.bias, layer.compute_dtype)

    assert not np.any(numpy_of(weights))
    np.testing.assert_array_equal(
        numpy_of(output), np.broadcast_to(numpy_of(bias), output.shape)
    )


# Agreement.


def test_agrees_with_the_paper(kind):
    inputs = inputs_of(kind)
    layer = built(inputs)
    mask = np.arange(inputs[-1].shape[1]) < [[3], [5]]

    np.testing.assert_allclose(
        layer(*inputs, memory_mask=mask),
        reference(layer, *inputs, admitted=mask[:, None]),
        atol=1e-4,
    )


@pytest.mark.parametrize("window", [None, 0, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_agrees_with_the_paper_under_causality_and_window(seed, causal, window):
    query = normal(2, 6, 8)
    layer = built([query], window=window)
    before = np.arange(6)[:, None] - np.arange(6)
    admitted = np.ones((6, 6), bool)
    if causal:
        admitted &= before >= 0
    if window is not None:
        admitted &= abs(before) <= window

    np.testing.assert_allclose(
        layer(query, causal=causal),
        reference(layer, query, admitted=admitted),
        atol=1e-4,
    )
    np.testing.assert_allclose(
        layer(query, causal=causal),
        layer(query, memory_mask=np.broadcast_to(admitted, (2, 6, 6))),
        atol=1e-5,
    )


def test_rotary_agrees_with_complex_numbers(seed):
    """The energies of Su et al. 2021, equation 16, one head."""
    query = normal(1, 5, 8)
    layer = MultiHeadAttention(num_heads=1, key_dim=4, rotary=True)
    layer(query)
    layer.set_weights([normal(*w.shape) for w in layer.weights])
    kernel, bias, *_ = layer.get_weights()
    q, k, _ = np.split(query[0] @ kernel + bias, 3, axis=-1)
    turns = np.arange(5)[:, None] * 10000.0 ** (-np.arange(2) / 2)
    q, k = ((x[:, :2] + 1j * x[:, 2:]) * np.exp(1j * turns) for x in (q, k))
    powers = np.exp((q @ k.conj().T).real / 2)

    _, weights = layer(query, return_weights=True)
    expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights[0, 0], expected, atol=1e-4)


def test_relative_positions_agree_with_the_paper(seed):
    """Shaw et al. 2018, equation 4, of one head."""
    query = normal(1, 5, 8)
    layer = MultiHeadAttention(num_heads=1, key_dim=4, max_relative_position=2)
    layer(query)
    layer.set_weights([normal(*w.shape) for w in layer.weights])
    kernel, bias = layer.query_key_value.get_weights()
    q, k, _ = np.split(query[0] @ kernel + bias, 3, axis=-1)
    back = np.clip(np.arange(5)[:, None] - np.arange(5), -2, 2)
    embeddings = numpy_of(layer.distance_embeddings)[back + 2]  # (5, 5, 4)
    powers = np.exp((q[:, None] * (k + embeddings)).sum(axis=-1) / 2)

    _, weights = layer(query, return_weights=True)
    expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights[0, 0], expected, atol=1e-4)


def test_grouped_queries_agree_with_repeated_keys_and_values(seed):
    query = normal(2, 5, 8)
    grouped = MultiHeadAttention(num_heads=4, key_dim=3, num_kv_heads=2)
    whole = MultiHeadAttention(num_heads=4, key_dim=3)
    for layer in (grouped, whole):
        layer(query)
    kernel, bias, *rest = [normal(*w.shape) for w in grouped.weights]
    grouped.set_weights([kernel, bias, *rest])

    def repeated(x):
        q, k, v = np.split(x, [12, 18], axis=-1)
        k, v = (
            np.repeat(y.reshape(*y.shape[:-1], 2, 3), 2, axis=-2)
            for y in (k, v)
        )
        k, v = (y.reshape(*y.shape[:-2], 12) for y in (k, v))
        return np.concatenate([q, k, v], axis=-1)

    whole.set_weights([repeated(kernel), repeated(bias), *rest])
    np.testing.assert_allclose(
        grouped(query, causal=True), whole(query, causal=True), atol=1e-4
    )


def test_agrees_with_keras(kind):
    inputs = inputs_of(kind)
    layer = built(inputs)
    theirs = keras.layers.MultiHeadAttention(num_heads=3, key_dim=4)
    theirs.build(inputs[0].shape, inputs[-1].shape)
    *fused, output_kernel, output_bias = layer.get_weights()
    if kind == "self":
        kernels, biases = (np.split(x, 3, axis=-1) for x in fused)
    else:
        kernels = [fused[0], *np.split(fused[2], 2, axis=-1)]
        biases = [fused[1], *np.split(fused[3], 2)]
    projections = [
        x.reshape(*x.shape[:-1], 3, 4)
        for pair in zip(kernels, biases, strict=True)
        for x in pair
    ]
    theirs.set_weights(
        [*projections, output_kernel.reshape(3, 4, 8), output_bias]
    )
    mask = np.arange(inputs[-1].shape[1]) < [[3], [5]]

    output, weights = layer(*inputs, memory_mask=mask, return_weights=True)
    expected, expected_weights = theirs(
        inputs[0],
        inputs[-1],
        attention_mask=mask[:, None],
        return_attention_scores=True,
    )
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)


@pytest.mark.parametrize(
    "arguments", [{}, {"rotary": True}, {"max_relative_position": 2}], ids=str
)
@pytest.mark.parametrize("chunk, window", [(1, None), (1, 1), (2, 1)])
def test_cached_steps_equal_the_whole_sequence(seed, chunk, window, arguments):
    query = normal(2, 4, 8)
    mask = np.arange(4) >= [[0], [1]]
    layer = built([query], window=window, **arguments)
    whole = layer(query, memory_mask=mask, causal=True)

    empty = ops.zeros((2, 3, 0, 4))
    cache, steps = {"key": empty, "value": empty}, []
    for end in range(chunk, 5, chunk):
        output, weights, cache = layer(
            query[:, end - chunk : end],
            memory_mask=mask[:, :end],
            causal=True,
            cache=cache,
            return_weights=True,
        )
        assert weights.shape == (2, 3, chunk, end)
        assert cache["key"].shape == cache["value"].shape == (2, 3, end, 4)
        steps.append(numpy_of(output))
    np.testing.assert_allclose(np.concatenate(steps, 1), whole, atol=1e-5)


@pytest.mark.parametrize("time", [1, 3])
def test_hypotheses_share_one_memory(seed, time):
    query, memory = normal(2 * 4, time, 8), normal(2, 7, 6)
    mask = np.arange(7) < [[3], [7]]
    layer = built([query, np.repeat(memory, 4, axis=0)])
    check_hypotheses(layer, query, memory, mask, atol=1e-5)


def test_a_batch_without_rows_has_masks_of_each_query():
    attention = MultiHeadAttention(num_heads=2, key_dim=4)
    output, weights = attention(
        *(np.ones((0, 5, 8)), np.ones((0, 7, 6))),
        memory_mask=np.ones((0, 5, 7), bool),
        return_weights=True,
    )
    assert output.shape == (0, 5, 8)
    assert weights.shape == (0, 2, 5, 7)


# Influence.


@pytest.mark.parametrize("window", [None, 2])
def test_the_future_changes_nothing(seed, window):
    query = normal(2, 6, 8)
    layer = built([query], window=window)
    other = query.copy()
    other[:, 4:] = normal(2, 2, 8)

    before = numpy_of(layer(query, causal=True))
    after = numpy_of(layer(other, causal=True))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.all(before[:, 4:] != after[:, 4:])


def test_a_window_bounds_what_is_seen(seed):
    query = normal(1, 9, 8)
    layer = built([query], window=2)
    other = query.copy()
    other[:, 4] = normal(8)

    changed = np.any(numpy_of(layer(query) != layer(other)), axis=-1)[0]
    np.testing.assert_array_equal(changed, abs(np.arange(9) - 4) <= 2)


def test_padding_changes_nothing(kind):
    inputs = inputs_of(kind)
    layer = built(inputs)
    length = inputs[-1].shape[1]
    mask = np.arange(length + 4) < np.full((2, 1), length)
    padded = [*inputs[:-1], np.pad(inputs[-1], [(0, 0), (0, 4), (0, 0)])]
    padded[-1][:, length:] = normal(2, 4, padded[-1].shape[-1])

    np.testing.assert_allclose(
        numpy_of(layer(*padded, memory_mask=mask))[:, :5],
        layer(*inputs),
        atol=1e-5,
    )


# Errors.


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_heads": 0, "key_dim": 4},
        {"num_heads": 2, "key_dim": -1},
        {"num_heads": 1.5, "key_dim": 4},
        {"num_heads": True, "key_dim": 4},
        {"num_heads": 2, "key_dim": 4, "window": -1},
    ],
)
def test_bad_arguments(arguments):
    with pytest.raises(ValueError, match=r"Received: \w+=(0|-1|1.5|True)$"):
        MultiHeadAttention(**arguments)


def test_rotary_needs_pairs_of_features():
    with pytest.raises(ValueError, match=r"even key_dim.*key_dim=3"):
        MultiHeadAttention(num_heads=2, key_dim=3, rotary=True)


def test_bad_calls():
    query, memory = normal(2, 5, 8), normal(2, 7, 6)
    with pytest.raises(ValueError, match="window=3"):
        built([query, memory], window=3)
    with pytest.raises(ValueError, match="rotary=True and a memory"):
        built([query, memory], rotary=True)

    layer = built([query])
    with pytest.raises(ValueError, match="its own inputs"):
        layer(query, memory)

    layer = built([query, memory])
    with pytest.raises(ValueError, match="attend to a memory"):
        layer(query)
    with pytest.raises(ValueError, match="causal=True"):
        layer(query, memory, causal=True)
