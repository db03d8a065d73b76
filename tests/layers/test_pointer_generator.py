import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import PointerGenerator
from tests.layers.arrays import normal, numpy_of, randomize

IDS = np.array([[3, 3, 1, 0], [2, 5, 0, 0]])


def inputs_of(rows=2, time=3):
    weights = np.random.dirichlet(50 * np.ones(4), (rows, time))
    return normal(rows, time, 6), normal(rows, time, 2), weights


def layer_of():
    layer = PointerGenerator()
    layer(*inputs_of(), IDS)
    return randomize(layer)


def by_definition(layer, logits, outputs, weights, ids):
    kernel, bias = map(numpy_of, layer.trainable_weights)
    gate = 1 / (1 + np.exp(-(outputs @ kernel + bias)))
    mixed = gate * np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for row, tokens in enumerate(ids):
        for place, token in enumerate(tokens):
            copied = weights[row, :, place] * (1 - gate[row, :, 0])
            mixed[row, :, token] += copied
    return mixed


def test_values(seed):
    layer, inputs = layer_of(), inputs_of()
    found = numpy_of(layer(*inputs, IDS))
    expected = by_definition(layer, *inputs, IDS)
    np.testing.assert_allclose(np.exp(found), expected, atol=1e-6)
    np.testing.assert_allclose(np.exp(found).sum(-1), 1, atol=1e-6)


def test_hypotheses_copy_from_the_source_of_their_item(seed):
    layer, inputs = layer_of(), inputs_of(rows=6)
    found = layer(*inputs, IDS)
    expected = layer(*inputs, np.repeat(IDS, 3, axis=0))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_padding_of_no_weight_changes_nothing(seed):
    layer, (logits, outputs, weights) = layer_of(), inputs_of()
    padded = np.pad(weights, [(0, 0), (0, 0), (0, 2)])
    ids = np.pad(IDS, [(0, 0), (0, 2)])
    np.testing.assert_array_equal(
        layer(logits, outputs, padded, ids),
        layer(logits, outputs, weights, IDS),
    )


def test_certainty_is_finite(seed):
    """Of the vocabulary, of the gate, of weights; all is wrong at once."""
    layer = layer_of()
    layer.gate.bias.assign([0.0])
    for sign in (1, -1):
        layer.gate.kernel.assign([[sign * 1e4], [0.0]])
        logits = np.array([[[1e4, -1e4, 0.0, 0.0, 0.0, 0.0]]])
        weights = np.array([[[0.0, 0.0, 0.0, 0.0]]])
        found = layer(logits, np.ones((1, 1, 2)), weights, IDS[:1])
        assert np.isfinite(numpy_of(found)).all()


def test_no_rows():
    layer = layer_of()
    empty = (np.zeros((0, 3, size)) for size in (6, 2, 4))
    assert layer(*empty, np.zeros((0, 4), int)).shape == (0, 3, 6)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a tape of TensorFlow"
)
def test_gradients_are_finite_and_those_of_a_difference(seed):
    import tensorflow as tf

    layer, inputs = layer_of(), inputs_of()
    tensors = [tf.constant(x, "float32") for x in inputs]

    def loss(*tensors):
        return ops.sum(ops.sin(layer(*tensors, IDS)))

    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = loss(*tensors)
    for i, gradient in enumerate(tape.gradient(value, tensors)):
        direction = normal(*gradient.shape)
        moved = [
            loss(*tensors[:i], tensors[i] + step * direction, *tensors[i + 1 :])
            for step in (1e-2, -1e-2)
        ]
        slope = (moved[0] - moved[1]) / 2e-2
        expected = np.sum(gradient * direction)
        assert float(slope) == pytest.approx(expected, rel=0.05, abs=0.05)
