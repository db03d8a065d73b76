import keras
import numpy as np
import pytest

from kseq.layers import AttentionDecoder, LuongAttention
from tests.layers.arrays import normal

MASK = np.arange(7) < [[7], [4]]


def built(memory, units=6, **arguments):
    layer = AttentionDecoder(units, **arguments)
    layer(normal(2, 5, 4), memory)
    for weight in layer.trainable_weights:
        weight.assign(normal(*weight.shape) / 2)
    return layer


def reference(layer, inputs, memory, mask, state):
    """The equations of the two papers, for cells of tanh and dot attention."""
    kernel, bias, input_kernel, output_kernel, *gate = (
        weight.numpy() for weight in layer.trainable_weights
    )

    def attention(hidden):
        energies = np.einsum("bd,bsd->bs", hidden, memory)
        powers = np.where(mask, np.exp(energies), 0)
        weights = powers / powers.sum(axis=-1, keepdims=True)
        context = np.einsum("bs,bsd->bd", weights, memory)
        if gate:
            context /= 1 + np.exp(-(hidden @ gate[0] + gate[1]))
        return context, weights

    def cell(x, *read):
        read = np.concatenate(read, axis=-1)
        return np.tanh(x @ input_kernel + read @ kernel + bias)

    def output_of(*parts):
        return np.tanh(np.concatenate(parts, axis=-1) @ output_kernel)

    (h,), y = state["hidden"], np.zeros_like(state["hidden"][0])
    outputs = []
    for x in inputs.swapaxes(0, 1):
        if layer.order == "bahdanau":
            c, a = attention(h)
            h = cell(x, c, h)
            y = output_of(h, c, x)
        else:
            h = cell(x, y, h) if layer.input_feeding else cell(x, h)
            c, a = attention(h)
            y = output_of(h, c)
        outputs.append((y, a))
    return [np.stack(steps, axis=1) for steps in zip(*outputs, strict=True)]


def test_worked_example():
    layer = AttentionDecoder(units=2, cell="tanh")
    inputs = np.array([[[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5]]])
    memory = np.zeros((1, 1, 2))
    layer(inputs, memory)
    layer.input_projection.set_weights([0.3 * np.eye(2)])
    layer.recurrent.set_weights([np.full((2, 2), 0.1), np.array([0.2, 0.8])])

    np.testing.assert_allclose(
        layer(inputs, memory),
        [[[0.3364, 0.7398], [0.4281, 0.6397], [0.1555, 0.7844]]],
        atol=5e-5,
    )


@pytest.mark.parametrize(
    "wiring",
    [
        *({}, {"input_feeding": True}, {"order": "bahdanau"}),
        {"context_gate": True},
        {"context_gate": True, "input_feeding": True},
        {"context_gate": True, "order": "bahdanau"},
    ],
)
def test_agrees_with_the_papers(seed, wiring):
    inputs, memory = normal(2, 5, 4), normal(2, 7, 6)
    layer = built(
        memory, attention=LuongAttention("dot"), cell="tanh", **wiring
    )
    state = {"hidden": [normal(2, 6)], "cell": []}
    found = layer(
        inputs,
        memory,
        memory_mask=MASK,
        initial_state=state,
        return_weights=True,
    )

    expected = reference(layer, inputs, memory, MASK, state)
    for output, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(output, value, atol=1e-5)


def test_without_attention_a_gru_is_that_of_keras(seed):
    inputs, memory = normal(2, 5, 4), normal(2, 1, 3)
    layer = built(memory, cell="gru")
    gru = keras.layers.GRU(6, return_sequences=True, reset_after=False)
    gru.build((2, 5, 4 + 3))
    kernel, bias, candidate, candidate_bias = layer.recurrent.get_weights()
    projections = layer.input_projection, layer.memory_projection
    gru.set_weights(
        [
            np.vstack([dense.get_weights()[0] for dense in projections]),
            np.concatenate([kernel, candidate], axis=1),
            np.concatenate([bias, candidate_bias]),
        ]
    )
    constant = np.repeat(memory, 5, axis=1)

    np.testing.assert_allclose(
        layer(inputs, memory),
        gru(np.concatenate([inputs, constant], axis=-1)),
        atol=1e-6,
    )


def test_without_attention_the_memory_is_a_constant_input(seed):
    inputs, memory = normal(2, 5, 4), normal(2, 1, 3)
    layer, lstm = built(memory), keras.layers.LSTM(6, return_sequences=True)
    lstm.build((2, 5, 4 + 3))
    kernel, bias, input_kernel, memory_kernel = (
        weight.numpy() for weight in layer.trainable_weights
    )
    forget = np.repeat([0.0, 1.0, 0.0, 0.0], 6)
    both = np.vstack([input_kernel, memory_kernel])
    lstm.set_weights([both, kernel, bias + forget])
    constant = np.repeat(memory, 5, axis=1)

    np.testing.assert_allclose(
        layer(inputs, memory),
        lstm(np.concatenate([inputs, constant], axis=-1)),
        atol=1e-6,
    )
