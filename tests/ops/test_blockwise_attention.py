"""Attention in blocks of queries beside attention of all at once."""

import keras
import numpy as np
import pytest

from kseq import ops
from kseq.layers import Dropout, MultiHeadAttention
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of, randomize

TENSORFLOW = keras.backend.backend() == "tensorflow"
needs_tape = pytest.mark.skipif(not TENSORFLOW, reason="needs a gradient tape")
HEADS, SIZE = 2, 4


def whole(queries, keys, values, mask=None, causal=False):
    admitted = None
    if causal:
        lengths = keras.ops.shape(queries)[2], keras.ops.shape(keys)[2]
        admitted = ops.causal_mask(*lengths)
    if mask is not None:
        mask = mask[:, None, None]
        admitted = mask if admitted is None else admitted & mask
    energies = ops.scaled_dot_energies(queries, keys)
    return ops.weighted_sum(ops.masked_softmax(energies, admitted), values)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("time", [0, 1, 3, 4, 17])
@pytest.mark.parametrize("memory_time", [1, 17])
def test_equals_all_queries_at_once(seed, time, memory_time, causal):
    if causal and time > memory_time:
        pytest.skip("the queries are the last of all positions")
    queries = normal(3, HEADS, time, SIZE)
    keys, values = (normal(3, HEADS, memory_time, SIZE) for _ in range(2))
    for mask in (None, np.random.rand(3, memory_time) < [[0], [0.5], [1]]):
        for block in (1, 4, 256):
            found = ops.blockwise_attention(
                *(queries, keys, values, mask, causal), block=block
            )
            expected = whole(queries, keys, values, mask, causal)
            np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_half_precision(seed, policy):
    dtype = policy.removeprefix("mixed_")
    arrays = [normal(2, HEADS, 9, SIZE) for _ in range(3)]
    half = [keras.ops.cast(x, dtype) for x in arrays]
    mask = np.arange(9) < [[0], [5]]
    found = ops.blockwise_attention(*half, mask, block=4)

    assert keras.ops.dtype(found) == dtype
    np.testing.assert_array_equal(numpy_of(found), numpy_of(whole(*half, mask)))


def gradients_of(attend):
    """A function of queries, keys, values, mask and the contexts' gradient."""
    import tensorflow as tf

    def gradients(queries, keys, values, mask, upstream):
        arrays = [queries, keys, values]
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            contexts = attend(*arrays, mask, causal=True)
        return contexts, *tape.gradient(
            contexts, arrays, output_gradients=upstream
        )

    heads = tf.TensorSpec((None, HEADS, None, SIZE))
    mask = tf.TensorSpec((None, None), tf.bool)
    return gradients, [heads, heads, heads, mask, heads]


def in_blocks(*arguments, **options):
    return ops.blockwise_attention(*arguments, block=4, **options)


@needs_tape
@pytest.mark.parametrize("form", ["eager", "graph", "xla"])
def test_has_the_gradients_of_all_queries_at_once(seed, form):
    """Also in graphs that serve every length."""
    import tensorflow as tf

    found, signature = gradients_of(in_blocks)
    expected, _ = gradients_of(whole)
    if form != "eager":
        found = tf.function(
            found, signature, autograph=False, jit_compile=form == "xla"
        )
    for time in (3, 10) if form != "xla" else (10,):
        arrays = [tf.constant(normal(2, HEADS, time, SIZE)) for _ in range(4)]
        mask = tf.constant(np.arange(time) < [[2], [time]])
        arguments = *arrays[:3], mask, arrays[3]
        for one, other in zip(
            found(*arguments), expected(*arguments), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-5)


@needs_tape
@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_gradients_in_half_precision(seed, policy):
    import tensorflow as tf

    arrays = [normal(2, HEADS, 11, SIZE) for _ in range(4)]
    mask = tf.constant(np.arange(11) < [[2], [11]])
    gradients, _ = gradients_of(in_blocks)
    exact, half = (
        gradients(*of_dtype[:3], mask, of_dtype[3])
        for of_dtype in (
            [tf.cast(x, dtype) for x in arrays]
            for dtype in ("float32", policy.removeprefix("mixed_"))
        )
    )
    for one, other in zip(exact, half, strict=True):
        scale = np.abs(one).max()
        assert other.dtype.name == policy.removeprefix("mixed_")
        np.testing.assert_allclose(
            numpy_of(other) / scale, one / scale, atol=0.03
        )


@needs_tape
def test_the_gradient_drops_what_was_dropped(seed):
    """Contexts are linear in the values, and the gradient says how."""
    import tensorflow as tf

    queries, keys, values = (
        tf.constant(normal(2, HEADS, 11, SIZE)) for _ in range(3)
    )
    drop = Dropout(0.5).repeatable(training=True)

    def attend(queries, keys, values):
        return ops.blockwise_attention(
            queries, keys, values, dropout=drop, block=4
        )

    def difference(move):
        """Of the sum of squares, moved by this share of the directions."""
        moved = [x + move * d for x, d in zip(arrays, along, strict=True)]
        return tf.reduce_sum(attend(*moved) ** 2)

    arrays = [queries, keys, values]
    along = [tf.constant(normal(*x.shape)) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        loss = tf.reduce_sum(attend(*arrays) ** 2)
    gradients = tape.gradient(loss, arrays)
    expected = (difference(1e-3) - difference(-1e-3)) / 2e-3
    found = sum(
        tf.reduce_sum(g * d) for g, d in zip(gradients, along, strict=True)
    )

    assert np.any(attend(*arrays) != in_blocks(*arrays))
    np.testing.assert_array_equal(attend(*arrays), attend(*arrays))
    np.testing.assert_allclose(found, expected, rtol=1e-2)


def test_each_block_drops_others():
    drop = Dropout(0.5, seed=3).repeatable(training=True)
    ones = np.ones((4, 100), "float32")
    first, again, second = (numpy_of(drop(ones, i)) for i in (0, 0, 1))

    np.testing.assert_array_equal(first, again)
    assert np.abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.2
    assert Dropout(0.5).repeatable(training=False) is None
    assert Dropout(0.0).repeatable(training=True) is None


# The layer.


def built(**arguments):
    layer = MultiHeadAttention(num_heads=HEADS, key_dim=SIZE, **arguments)
    layer.build((None, None, 8))
    return randomize(layer, 0.3)


def shapes_in(graph):
    """Of all tensors, also of its loops."""
    from tensorflow.python.framework.function_def_to_graph import (
        function_def_to_graph,
    )

    for op in graph.get_operations():
        yield from (output.shape for output in op.outputs)
        if op.type in ("While", "StatelessWhile"):
            name = op.get_attr("body").name
            (body,) = (
                function
                for function in graph.as_graph_def().library.function
                if function.signature.name == name
            )
            yield from shapes_in(function_def_to_graph(body))


def loops(graph):
    kinds = [op.type for op in graph.get_operations()]
    return kinds.count("While") + kinds.count("StatelessWhile")


def training_of(layer):
    import tensorflow as tf

    def gradients(query):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(query, causal=True, training=True) ** 2)
        variables = [weight.value for weight in layer.trainable_weights]
        return loss, tape.gradient(loss, variables)

    return tf.function(gradients, autograph=False)


@needs_tape
@pytest.mark.parametrize("window", [None, 256])
def test_a_graph_of_4096_positions_has_no_tensor_of_its_square(seed, window):
    import tensorflow as tf

    time = 4096
    step = training_of(built(dropout=0.1, window=window))
    graph = step.get_concrete_function(tf.TensorSpec((1, time, 8))).graph
    shapes = list(shapes_in(graph))

    assert all(shape.is_fully_defined() for shape in shapes if shape.rank == 4)
    sizes = [shape.num_elements() or 0 for shape in shapes]
    assert max(sizes) <= HEADS * time * (256 if window is None else 512)
    assert loops(graph) == (2 if window is None else 0)


@needs_tape
def test_a_graph_of_every_length_is_told_whether_they_are_long(seed):
    import tensorflow as tf

    query = tf.constant(normal(2, 10, 8))
    layer = built()
    results = []
    for are_long in (False, True):
        with ops.long_sequences(are_long):
            function = training_of(layer).get_concrete_function(
                tf.TensorSpec((None, None, 8))
            )
        assert loops(function.graph) == 2 * are_long
        results.append(function(query))
    for one, other in zip(*map(tf.nest.flatten, results), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@needs_tape
@pytest.mark.parametrize("window", [None, 400])
def test_long_sequences_have_the_gradients_of_short_ones(seed, window):
    """A graph of 1,024 positions beside one that serves every length."""
    import tensorflow as tf

    query = tf.constant(normal(1, 1024, 8))
    step = training_of(built(window=window))
    results = [
        step.get_concrete_function(tf.TensorSpec(shape))(query)
        for shape in ((1, 1024, 8), (None, None, 8))
    ]
    for one, other in zip(*map(tf.nest.flatten, results), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_long_memory(seed):
    query, memory = normal(2, 512, 8), normal(2, 2048, 6)
    mask = np.arange(2048) < [[0], [1500]]
    layer = MultiHeadAttention(num_heads=HEADS, key_dim=SIZE)
    layer(query, memory)
    output, _ = layer(query, memory, memory_mask=mask, return_weights=True)
    np.testing.assert_allclose(
        layer(query, memory, memory_mask=mask), output, atol=1e-5
    )
