import keras
import numpy as np
import pytest

from kseq.layers.recurrent_stack import RecurrentStack
from tests.layers.arrays import normal


def state_of(stack, batch=3):
    return keras.tree.map_structure(
        lambda x: normal(*x.shape), stack.zeros(batch)
    )


# The contract.


@pytest.mark.parametrize("cell, gate_units", [("lstm", 16), ("tanh", 4)])
def test_shapes_and_weights(seed, cell, gate_units):
    stack = RecurrentStack(units=4, num_layers=2, cell=cell)
    state = state_of(stack)
    after = stack(normal(3, gate_units), state, fed=normal(3, 5))

    assert [weight.shape for weight in stack.weights if weight.trainable] == [
        (5 + 4, gate_units),
        (gate_units,),
        (4 + 4, gate_units),
        (gate_units,),
    ]
    keras.tree.assert_same_structure(after, state)
    assert {x.shape for x in keras.tree.flatten(after)} == {(3, 4)}


def test_config(seed):
    stack = RecurrentStack(units=4, num_layers=2, cell="tanh", dropout=0.1)
    again = RecurrentStack.from_config(stack.get_config())

    assert again.get_config() == stack.get_config()


# Values.


def test_is_the_lstm_of_keras(seed):
    inputs, hidden, cell = normal(3, 5), normal(3, 4), normal(3, 4)
    stack, lstm = RecurrentStack(units=4), keras.layers.LSTM(4)
    stack(normal(3, 16), stack.zeros(3), fed=inputs)
    stack.set_weights([normal(*weight.shape) for weight in stack.weights])
    lstm.build((3, 1, 5))
    kernel, bias = stack.get_weights()
    forget = np.repeat([0.0, 1.0, 0.0, 0.0], 4)
    lstm.set_weights([kernel[:5], kernel[5:], bias + forget])

    after = stack(
        np.zeros((3, 16)), {"hidden": [hidden], "cell": [cell]}, fed=inputs
    )
    np.testing.assert_allclose(
        after["hidden"][0],
        lstm(inputs[:, None], initial_state=[hidden, cell]),
        atol=1e-6,
    )


def test_is_the_gru_of_keras(seed):
    inputs, others, hidden = normal(3, 5), normal(3, 2), normal(3, 4)
    stack = RecurrentStack(units=4, cell="gru")
    gru = keras.layers.GRU(4, reset_after=False)
    stack(normal(3, 12), stack.zeros(3), fed=inputs)
    stack.set_weights([normal(*weight.shape) for weight in stack.weights])
    kernel, bias, candidate, candidate_bias = stack.get_weights()
    both = np.concatenate([kernel, candidate], axis=1)
    projection = normal(2, 12)
    gru.build((3, 1, 5 + 2))
    gru.set_weights(
        [
            np.concatenate([both[:5], projection]),
            both[5:],
            np.concatenate([bias, candidate_bias]),
        ]
    )

    after = stack(
        others @ projection, {"hidden": [hidden], "cell": []}, fed=inputs
    )
    read = np.concatenate([inputs, others], axis=1)
    assert after["cell"] == []
    np.testing.assert_allclose(
        after["hidden"][0],
        gru(read[:, None], initial_state=hidden),
        atol=1e-5,
    )


def test_gru_cells_are_stacked(seed):
    stack = RecurrentStack(units=4, num_layers=2, cell="gru")
    upper = RecurrentStack(units=4, cell="gru")
    projected, state = normal(3, 12), state_of(stack)
    stack(projected, state)
    stack.set_weights([normal(*weight.shape) for weight in stack.weights])
    low, high = stack(projected, state)["hidden"]
    upper.build((3, 12), (3, 4))
    weights = stack.get_weights()  # kernel and bias: gates, then candidates
    upper.set_weights([*weights[2:4], *weights[6:8]])
    expected = upper(
        np.zeros((3, 12)), {"hidden": [state["hidden"][1]], "cell": []}, fed=low
    )

    np.testing.assert_allclose(high, expected["hidden"][0], atol=1e-5)


def test_one_cell_reads_the_other(seed):
    stack = RecurrentStack(units=4, num_layers=2, cell="tanh")
    projected, state = normal(3, 4), state_of(stack)
    after = stack(projected, state)
    lower, lower_bias, upper, upper_bias = stack.get_weights()
    below, above = state["hidden"]
    low = np.tanh(projected + below @ lower + lower_bias)
    high = np.tanh(low @ upper[:4] + above @ upper[4:] + upper_bias)

    np.testing.assert_allclose(after["hidden"][0], low, atol=1e-6)
    np.testing.assert_allclose(after["hidden"][1], high, atol=1e-6)


def test_dropout_lies_between_the_cells(seed):
    stack = RecurrentStack(units=50, num_layers=2, cell="tanh", dropout=0.2)
    inputs = normal(3, 7, 5)
    (keep,) = stack.dropout_masks(inputs, training=True)

    assert keep.shape == (3, 7, 50)
    np.testing.assert_allclose(np.unique(keep), [0, 1.25])
    assert np.mean(keep) == pytest.approx(1, abs=0.1)
    assert stack.dropout_masks(inputs, training=False) == []

    state = state_of(stack)
    after = stack(normal(3, 50), state, keep=[np.zeros((3, 50))])
    _, _, upper, upper_bias = stack.get_weights()
    high = np.tanh(state["hidden"][1] @ upper[50:] + upper_bias)
    np.testing.assert_allclose(after["hidden"][1], high, atol=1e-5)


# Errors.


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"units": 0}, "Received: units=0"),
        ({"num_layers": 0}, "Received: num_layers=0"),
        ({"cell": "rnn"}, "Received: cell='rnn'"),
        ({"units": 4.0}, "Received: units=4.0"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        RecurrentStack(**{"units": 4} | arguments)
