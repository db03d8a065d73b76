import keras
import numpy as np
import pytest

from kseq import ops
from kseq.control_tokens import START
from tests.layers.arrays import normal, numpy_of

# Masks.


def test_padding_mask():
    np.testing.assert_array_equal(
        ops.padding_mask(np.array([[5, 3, 0], [0, 0, 0]])),
        [[True, True, False], [False, False, False]],
    )


def test_start_mask():
    np.testing.assert_array_equal(
        ops.start_mask(np.array([START, START + 1, 0])), [True, False, False]
    )


def test_right_align():
    ids = np.array([[5, 3, 0], [0, 0, 0], [7, 8, 9]], "int32")
    aligned = ops.right_align(ids)

    np.testing.assert_array_equal(aligned, [[0, 5, 3], [0, 0, 0], [7, 8, 9]])
    assert keras.ops.dtype(aligned) == "int32"
    assert ops.right_align(ids[:, :0]).shape == (3, 0)


def test_causal_mask_of_a_whole_sequence_and_of_its_last_two_queries():
    whole = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]

    np.testing.assert_array_equal(ops.causal_mask(4, 4), whole)
    np.testing.assert_array_equal(ops.causal_mask(2, 4), whole[2:])


def test_window_mask_of_a_whole_sequence_and_of_its_last_two_queries():
    whole = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]

    np.testing.assert_array_equal(ops.window_mask(4, 4, 1), whole)
    np.testing.assert_array_equal(ops.window_mask(2, 4, 1), whole[2:])


def test_last_mask_counts_real_states_only():
    mask = np.array([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [0] * 4], bool)

    np.testing.assert_array_equal(
        ops.last_mask(mask, 2),
        [[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0] * 4],
    )


# Energies, weights, context.


def test_worked_example_of_dot_attention():
    memory = np.array(
        [
            [0.7, -0.6, 0.2, -0.8],
            [0.3, 0.5, -0.7, -0.5],
            [-0.6, 0.1, 0.6, 0.4],
        ],
        "float32",
    ).T[None]  # its columns are time
    query = np.array([[[0.4, 0.1, -0.3]]], "float32")
    energies = ops.dot_energies(query, memory)
    context, weights = ops.attend(energies, memory)

    np.testing.assert_allclose(
        energies[0, 0], [0.49, -0.22, -0.17, -0.49], atol=5e-3
    )
    np.testing.assert_allclose(
        weights[0, 0], [0.420, 0.206, 0.217, 0.157], atol=1e-3
    )
    np.testing.assert_allclose(
        context[0, 0], [0.087, -0.002, -0.038], atol=5e-4
    )


def test_worked_example_of_scaled_self_attention():
    p = np.array([[1, 0], [0, 2], [1, 0]], "float32")  # columns are time
    query = np.array([[1, 1, 0], [0, 0, 1]], "float32") @ p
    key = np.array([[0, 1, 0], [1, 0, 1]], "float32") @ p
    value = np.array([[0, 1, 1], [1, 0, 1]], "float32") @ p
    energies = ops.scaled_dot_energies(query.T[None], key.T[None])
    context, weights = ops.attend(energies, value.T[None])

    np.testing.assert_allclose(
        numpy_of(weights)[0].T, [[0.5, 0.06], [0.5, 0.94]], atol=5e-3
    )
    np.testing.assert_allclose(
        numpy_of(context)[0].T, [[1.5, 1.94], [1, 0.11]], atol=5e-3
    )


def test_additive_energies(seed):
    query, keys, scale = normal(2, 3, 4), normal(2, 5, 4), normal(4)
    expected = np.tanh(query[:, :, None] + keys[:, None]) @ scale

    energies = ops.additive_energies(query, keys, scale)
    np.testing.assert_allclose(energies, expected, atol=1e-5)

    pairs = normal(2, 3, 5, 4)
    expected = np.tanh(query[:, :, None] + keys[:, None] + pairs) @ scale
    energies = ops.additive_energies(query, keys, scale, pairs)
    np.testing.assert_allclose(energies, expected, atol=1e-5)


def test_with_empty_row(seed):
    convolution = keras.layers.Conv1D(2, 3, use_bias=False)
    convolution.build((None, None, 1))
    x = normal(3, 5, 1)

    np.testing.assert_allclose(
        ops.with_padded_batch(convolution, x), convolution(x), atol=1e-6
    )
    assert ops.with_padded_batch(convolution, x[:0]).shape == (0, 3, 2)


def test_masked_softmax(seed):
    energies = normal(2, 3, 4, 5)
    mask = np.arange(5) < np.array([2, 5]).reshape(2, 1, 1, 1)
    powers = np.exp(energies) * mask

    np.testing.assert_allclose(
        ops.masked_softmax(energies, mask),
        powers / powers.sum(axis=-1, keepdims=True),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        ops.masked_softmax(energies),
        ops.masked_softmax(energies, np.ones(5, bool)),
        atol=1e-6,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_nothing_admitted_gives_zeros(dtype):
    energies = keras.ops.cast(normal(2, 3, 5), dtype)
    mask = np.array([[[False] * 5], [[True] + [False] * 4]])
    weights = ops.masked_softmax(energies, mask)

    assert weights.dtype == energies.dtype
    np.testing.assert_array_equal(
        numpy_of(weights), np.broadcast_to(mask * 1.0, (2, 3, 5))
    )


@pytest.mark.parametrize("admitted", [True, False])
def test_softmax_of_one_place(admitted):
    weights = ops.masked_softmax(normal(2, 3, 1), np.full((2, 3, 1), admitted))

    np.testing.assert_array_equal(weights, np.full((2, 3, 1), admitted))


def test_masked_energies_have_no_influence_however_large():
    mask = np.array([True, True, False])
    small = ops.masked_softmax(np.array([[1, 2, 0]], "float32"), mask)
    large = ops.masked_softmax(np.array([[1, 2, 1e9]], "float32"), mask)

    np.testing.assert_array_equal(small, large)


# Hypotheses.


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 1, 4), (4,)])
def test_a_mask_of_another_rank_is_refused(shape):
    """It would broadcast: the context would have an axis more."""
    energies, values = normal(2, 3, 4), normal(2, 4, 5)
    with pytest.raises(ValueError, match=r"memory_mask must be \(B, S\)"):
        ops.attend(energies, values, np.ones(shape, bool))


def test_fold_and_unfold(seed):
    query, memory = normal(2 * 3, 4, 5), normal(2, 7, 5)
    folded = ops.fold_hypotheses(query, memory)

    assert folded.shape == (2, 12, 5)
    np.testing.assert_array_equal(folded[1, :4], query[3])
    np.testing.assert_array_equal(ops.unfold_hypotheses(folded, query), query)


def test_fold_and_unfold_nothing():
    query, memory = np.zeros((0, 4, 5)), np.zeros((0, 7, 5))
    folded = ops.fold_hypotheses(query, memory)

    assert ops.unfold_hypotheses(folded, query).shape == (0, 4, 5)


# Recurrence.


def test_lstm_step(seed):
    gates, cell = normal(2, 12), normal(2, 3)
    admit, keep, candidate, emit = np.split(gates, 4, axis=-1)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    expected = sigmoid(keep + 1) * cell + sigmoid(admit) * np.tanh(candidate)
    hidden, cell = ops.lstm_step(gates, cell)
    np.testing.assert_allclose(cell, expected, atol=1e-6)
    np.testing.assert_allclose(
        hidden, sigmoid(emit) * np.tanh(expected), atol=1e-6
    )


def test_lstm_over_time(seed):
    """The mask leaves the state as it is; the bias may be one of each row."""
    inputs, kernel, recurrent = normal(2, 4, 5), normal(5, 12), normal(3, 12)
    bias, states = normal(2, 12), [normal(2, 3), normal(2, 3)]
    mask = np.array([[1, 0, 1, 1], [0, 1, 1, 0]], bool)
    outputs, last = ops.lstm_over_time(
        inputs, kernel, recurrent, bias, states, mask
    )

    for t, x in enumerate(inputs.swapaxes(0, 1)):
        gates = x @ kernel + bias + states[0] @ recurrent
        after = ops.lstm_step(gates, states[1], forget_bias=None)
        states = [
            np.where(mask[:, t, None], numpy_of(new), old)
            for new, old in zip(after, states, strict=True)
        ]
        np.testing.assert_allclose(outputs[:, t], states[0], atol=1e-5)
    np.testing.assert_allclose(last, states, atol=1e-5)


def test_gru_over_time(seed):
    inputs, kernel, recurrent = normal(2, 4, 5), normal(5, 9), normal(3, 9)
    bias, first = normal(2, 9), normal(2, 3)
    outputs, [last] = ops.gru_over_time(
        inputs, kernel, recurrent, bias, [first]
    )

    gru = keras.layers.GRU(3, return_sequences=True)
    gru.build((2, 4, 5))
    gru.set_weights([kernel, recurrent, bias])
    expected = numpy_of(gru(inputs, initial_state=first))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(last, expected[:, -1], atol=1e-5)


@pytest.mark.parametrize("unroll", [False, True])
def test_a_loop_returns_what_is_read_of_its_states(seed, unroll):
    inputs = {"x": normal(2, 4, 3)}
    sums = ops.scan_time(
        lambda state, at_step: {
            "sum": state["sum"] + at_step["x"],
            "last": at_step["x"],
        },
        {"sum": np.zeros((2, 3), "float32"), "last": inputs["x"][:, 0]},
        inputs,
        read=lambda state: state["sum"],
        unroll=unroll,
    )

    np.testing.assert_allclose(sums, inputs["x"].cumsum(axis=1), atol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 4, 5), (0, 3, 5)])
def test_project(seed, shape):
    x, kernel = normal(*shape), normal(5, 6)

    np.testing.assert_allclose(ops.project(x, kernel), x @ kernel, atol=1e-5)


# Positions.


def test_sinusoids():
    positions, half = np.arange(600)[:, None], np.arange(8)
    angles = positions / 10000 ** (half / 8)
    table = ops.sinusoids(np.arange(600), 16)

    assert keras.backend.standardize_dtype(table.dtype) == "float32"
    np.testing.assert_allclose(table[:, :8], np.sin(angles), atol=1e-4)
    np.testing.assert_allclose(table[:, 8:], np.cos(angles), atol=1e-4)


@pytest.mark.parametrize("dim", [-2, 0, 7])
def test_sinusoids_come_in_pairs(dim):
    with pytest.raises(ValueError, match=f"dim={dim}"):
        ops.sinusoids(np.arange(3), dim)


def test_rotation_is_that_of_complex_numbers(seed):
    vectors, positions = normal(2, 3, 600, 8), np.arange(600)
    rates = 10000.0 ** (-np.arange(4) / 4)
    first, second = np.split(vectors, 2, axis=-1)
    turned = (first + 1j * second) * np.exp(1j * positions[:, None] * rates)
    expected = np.concatenate([turned.real, turned.imag], axis=-1)

    rotated = ops.rotary_embedding(vectors, positions)
    np.testing.assert_allclose(rotated, expected, atol=1e-3)
    np.testing.assert_array_equal(rotated[:, :, 0], vectors[:, :, 0])
    half = ops.rotary_embedding(keras.ops.cast(vectors, "float16"), positions)
    assert keras.ops.dtype(half) == "float16"
    np.testing.assert_allclose(numpy_of(half), expected, atol=1e-2)


def test_products_of_rotated_vectors_depend_on_distance(seed):
    query, key = normal(1, 8), normal(1, 8)

    def product(query_position, key_position):
        queries = ops.rotary_embedding(query, np.array([query_position]))
        keys = ops.rotary_embedding(key, np.array([key_position]))
        return float(keras.ops.sum(queries * keys))

    near = product(5, 2)
    assert product(105, 102) == pytest.approx(near, abs=1e-3)
    assert product(3, 0) == pytest.approx(near, abs=1e-4)
    assert product(2, 5) != pytest.approx(near, abs=1e-3)


# Loss.
