import functools

import keras
import numpy as np
import pytest

from kseq.layers.cudnn import without_cudnn
from kseq.layers.recurrent_layer import bidirectional_layer, recurrent_layer
from kseq.user_error import ArgumentError
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.slow import slow

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="Other backends run masked layers without cuDNN.",
)
MASK = np.array(
    [
        *([1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1]),
        *([1, 0, 1, 1, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0]),
    ],
    bool,
)


def one_way(cell, dtype="float32", **options):
    policy = keras.dtype_policies.get(dtype)
    return recurrent_layer(
        cell, 4, policy, return_state=True, name="layer", **options
    )


def both_ways(cell, dtype="float32"):
    return bidirectional_layer(one_way(cell, dtype), dtype=dtype)


def back(cell, dtype="float32"):
    return one_way(cell, dtype, go_backwards=True)


WAYS = {"forward": one_way, "backward": back, "both": both_ways}


def built(make, *arguments):
    layer = make(*arguments)
    layer.build((None, None, 3))
    for weight in layer.weights:
        weight.assign(normal(*weight.shape))
    return layer


def assert_close(found, expected):
    close = functools.partial(np.testing.assert_allclose, atol=1e-5)
    keras.tree.map_structure(close, found, expected)


def tensor(*shape):
    return keras.ops.convert_to_tensor(normal(*shape))


def outputs_and_gradients(layer, inputs, mask=None):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, mask=mask)
        sums = [
            tf.reduce_sum(tf.sin(tf.cast(part, "float32") + number))
            for number, part in enumerate(outputs)
        ]
    weights = [weight.value for weight in layer.trainable_variables]
    gradients = tape.gradient(sums, [inputs, *weights])
    return keras.tree.map_structure(numpy_of, [list(outputs), gradients])


@pytest.mark.parametrize(
    ("cell", "way"),
    [
        *(("lstm", "both"), ("gru", "backward")),
        *(slow("lstm", "forward"), slow("lstm", "backward")),
        *(slow("gru", "both"), slow("gru", "forward")),
    ],
)
def test_a_gpu_computes_what_a_cpu_does(seed, request, cell, way):
    layer, inputs = built(WAYS[way], cell), tensor(len(MASK), 5, 3)
    expected = outputs_and_gradients(layer, inputs, MASK)
    unmasked = outputs_and_gradients(layer, inputs)
    by_cudnn = request.getfixturevalue("simulated_gpu")
    found = outputs_and_gradients(layer, inputs, MASK)
    assert by_cudnn == [cell] * (2 if way == "both" else 1)
    assert_close(found, expected)
    assert_close(outputs_and_gradients(layer, inputs), unmasked)


@pytest.mark.parametrize(
    ("cell", "masked"),
    [
        *(("lstm", True), slow("lstm", False), slow("gru", True)),
        *(("gru", False), slow("tanh", True), slow("tanh", False)),
    ],
)
def test_a_batch_without_rows(seed, simulated_gpu, cell, masked):
    """A device may get one, and cuDNN refuses it."""
    layer, inputs = built(both_ways, cell), tensor(0, 5, 3)
    mask = MASK[:0] if masked else None
    (outputs, *states), gradients = outputs_and_gradients(layer, inputs, mask)
    assert outputs.shape == (0, 5, 8)
    assert {state.shape for state in states} == {(0, 4)}
    assert not any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, request, dtype):
    layer, inputs = built(both_ways, "lstm", dtype), tensor(len(MASK), 5, 3)
    (expected, *_), _ = outputs_and_gradients(layer, inputs, MASK)
    request.getfixturevalue("simulated_gpu")
    (outputs, *_), gradients = outputs_and_gradients(layer, inputs, MASK)
    np.testing.assert_allclose(outputs, expected, atol=0.05)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_without_cudnn_the_graph_is_that_of_a_cpu(seed, request):
    import tensorflow as tf

    layer = built(both_ways, "lstm")
    specs = tf.TensorSpec((None, None, 3)), tf.TensorSpec((None, None), bool)

    def ops_of(call):
        function = tf.function(lambda *given: call(given[0], mask=given[1]))
        graph = function.get_concrete_function(*specs).graph.as_graph_def()
        nodes = [*graph.node]
        for part in graph.library.function:
            nodes += part.node_def
        return sorted(node.op for node in nodes)

    expected = ops_of(layer)
    request.getfixturevalue("reported_gpu")
    assert "CudnnRNNV3" in ops_of(layer)
    assert ops_of(without_cudnn()(layer)) == expected


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("lstm", {"go_backwards": True}),
        ("gru", {"zero_output_for_mask": True}),
        *(slow("lstm", {}), slow("gru", {"go_backwards": True})),
    ],
)
def test_is_the_layer_of_keras(seed, cell, options):
    layer = built(functools.partial(one_way, **options), cell)
    of_keras = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[cell]
    other = of_keras.from_config(layer.get_config())
    other.build((None, None, 3))
    other.set_weights(layer.get_weights())
    inputs = tensor(len(MASK), 5, 3)
    for mask in (MASK, None):
        assert_close(
            outputs_and_gradients(layer, inputs, mask),
            outputs_and_gradients(other, inputs, mask),
        )


def test_xla_is_given_no_cudnn(seed, reported_gpu):
    import tensorflow as tf

    layer = built(both_ways, "gru")
    specs = tf.TensorSpec((None, None, 3)), tf.TensorSpec((None, None), bool)

    def uses_cudnn(**options):
        function = tf.function(
            lambda inputs, mask: tf.function(layer)(inputs, mask=mask),
            **options,
        )
        graph = function.get_concrete_function(*specs).graph.as_graph_def()
        return "CudnnRNNV3" in str(graph)

    assert uses_cudnn()
    assert not uses_cudnn(jit_compile=True)
    assert layer.forward_layer.supports_jit


def test_unknown_cell():
    with pytest.raises(ArgumentError, match="Received: cell='rnn'"):
        one_way("rnn")
