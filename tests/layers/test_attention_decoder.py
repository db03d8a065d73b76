import functools

import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import (
    AttentionDecoder,
    BahdanauAttention,
    LocalAttention,
    LocationAttention,
    LocationAwareAttention,
    LuongAttention,
)
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.slow import others_slow, slow

TENSORFLOW = keras.backend.backend() == "tensorflow"
WIRINGS = {
    "luong": {"order": "luong"},
    "feeding": {"order": "luong", "input_feeding": True},
    "bahdanau": {"order": "bahdanau"},
    "none": {"attention": None},
}
MASK = np.arange(7) < [[7], [4]]


def make(wiring, **arguments):
    defaults = {"units": 6, "attention": LuongAttention("dot")}
    return AttentionDecoder(**defaults | WIRINGS[wiring] | arguments)


def inputs_of(wiring):
    return normal(2, 5, 4), normal(2, 1 if wiring == "none" else 7, 6)


def mask_of(wiring):
    return MASK[:, : 1 if wiring == "none" else 7]


def built(wiring, **arguments):
    layer = make(wiring, **arguments)
    layer(*inputs_of(wiring))
    for weight in layer.trainable_weights:
        weight.assign(normal(*weight.shape) / 2)
    return layer


def state_of(layer, batch=2):
    return keras.tree.map_structure(
        lambda x: normal(*x.shape), layer.recurrent.zeros(batch)
    )


def step_by_step(layer, inputs, memory, memory_mask, initial_state=None):
    """The outputs of steps; inputs may be K times as many as memories."""
    projected_memory = layer.project_memory(memory)
    repeated = np.repeat(memory, len(inputs) // len(memory), axis=0)
    state, outputs = layer.start(repeated, initial_state), []
    for x in inputs.swapaxes(0, 1):
        output, state = layer.step(
            x, state, projected_memory, memory_mask=memory_mask
        )
        outputs.append(numpy_of(output))
    return np.stack(outputs, axis=1)


@pytest.fixture(params=WIRINGS)
def wiring(request, seed):
    return request.param


# The contract.


def test_shapes_and_weights(wiring):
    layer = make(wiring, num_layers=2)
    outputs = layer(*inputs_of(wiring))
    fed = {"luong": 0, "feeding": 6, "bahdanau": 6, "none": 0}[wiring]
    last = {
        "luong": {"output_projection/kernel": (12, 6)},
        "feeding": {"output_projection/kernel": (12, 6)},
        "bahdanau": {"output_projection/kernel": (16, 6)},
        "none": {"memory_projection/kernel": (6, 24)},
    }[wiring]

    assert outputs.shape == (2, 5, 6)
    assert layer.compute_output_shape((2, 5, 4), (2, 7, 6)) == (2, 5, 6)
    assert last | {
        "input_projection/kernel": (4, 24),
        "recurrent/recurrence_0/kernel": (fed + 6, 24),
        "recurrent/recurrence_0/bias": (24,),
        "recurrent/recurrence_1/kernel": (12, 24),
        "recurrent/recurrence_1/bias": (24,),
    } == {
        weight.path.split("/", 1)[1]: weight.shape
        for weight in layer.trainable_weights
    }


@pytest.mark.parametrize("wiring", ["luong", "feeding", "bahdanau"])
def test_symbolic_shapes(wiring):
    inputs, memory = keras.Input((None, 4)), keras.Input((7, 6))
    outputs, weights = make(wiring)(inputs, memory, return_weights=True)

    assert outputs.shape == (None, None, 6)
    assert weights.shape == (None, None, 7)
    assert make(wiring)(inputs, memory).shape == (None, None, 6)


@pytest.mark.parametrize(
    "wiring",
    # The others are saved and loaded in test_every_layer.py.
    others_slow(WIRINGS, ["feeding"]),
    indirect=True,
)
def test_round_trip_through_a_file(wiring, tmp_path):
    inputs, memory = keras.Input((None, 4)), keras.Input((1, 6))
    mask = keras.Input((1,), dtype="bool")
    layer = make(wiring, num_layers=2, cell="tanh", dropout=0.1)
    outputs = layer(inputs, memory, memory_mask=mask)
    model = keras.Model([inputs, memory, mask], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    values = [*inputs_of("none"), mask_of("none")]

    np.testing.assert_array_equal(model(values), loaded(values))


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(wiring, dtype):
    layer, half = built(wiring), built(wiring, dtype=dtype)
    half.set_weights(layer.get_weights())
    inputs, memory = inputs_of(wiring)
    outputs = half(inputs, memory, memory_mask=mask_of(wiring))

    assert ops.dtype(outputs) == dtype.removeprefix("mixed_")
    assert half.attention is None or half.attention.dtype_policy.name == dtype
    np.testing.assert_allclose(
        numpy_of(outputs),
        numpy_of(layer(inputs, memory, memory_mask=mask_of(wiring))),
        atol=0.1,
    )


@pytest.mark.parametrize("gated", [False, True])
def test_steps_in_half_precision(seed, gated):
    layer = built("feeding", dtype="mixed_bfloat16", context_gate=gated)
    inputs, memory = inputs_of("feeding")
    outputs = layer(inputs, memory, memory_mask=MASK)
    stepped = step_by_step(
        *(layer, inputs.astype("float32")),
        *(ops.cast(memory, "bfloat16"), MASK),
    )
    np.testing.assert_allclose(numpy_of(stepped), numpy_of(outputs), atol=0.05)


# Two ways to one answer.


@pytest.mark.parametrize(
    ("num_layers", "cell"),
    [
        (1, "lstm"),
        (2, "gru"),
        (2, "tanh"),
        slow(1, "gru"),
        slow(1, "tanh"),
        slow(2, "lstm"),
    ],
)
def test_step_by_step(wiring, num_layers, cell):
    layer = built(wiring, num_layers=num_layers, cell=cell)
    inputs, memory = inputs_of(wiring)
    mask, state = mask_of(wiring), state_of(layer)
    outputs = layer(inputs, memory, memory_mask=mask, initial_state=state)

    np.testing.assert_allclose(
        step_by_step(layer, inputs, memory, mask, state), outputs, atol=1e-5
    )


@pytest.mark.parametrize(
    "wiring",
    [
        slow("luong"),
        "feeding",
        slow("bahdanau"),
    ],
)
@pytest.mark.parametrize(
    "attention",
    [
        BahdanauAttention(units=3),
        BahdanauAttention(units=3, window=2, shared=True, use_bias=True),
        LuongAttention("general", units=3, symmetric=True, use_bias=True),
        LuongAttention("general"),
        LuongAttention("concat", units=3),
        LuongAttention("scaled_dot", window=2),
        LocalAttention("dot", window=1, alignment="monotonic"),
        LocalAttention(window=2),
        LocationAttention(max_length=5),
        LocationAwareAttention(units=3, filters=2, kernel_size=4),
        LocationAwareAttention(units=3, window=2, use_bias=True),
    ],
)
def test_hypotheses_step_by_step(seed, attention, wiring):
    reads_last = getattr(attention, "reads_last_weights", False)
    if reads_last and wiring == "luong":
        pytest.skip("nothing is fed back")
    layer = built(wiring, attention=attention)
    inputs, memory = normal(6, 3, 4), normal(2, 7, 6)
    outputs = layer(
        inputs,
        np.repeat(memory, 3, axis=0),
        memory_mask=np.repeat(MASK, 3, axis=0),
    )

    np.testing.assert_allclose(
        step_by_step(layer, inputs, memory, MASK), outputs, atol=1e-5
    )


def test_an_unrolled_loop(wiring):
    layer = built(wiring, num_layers=2)
    unrolled = built(wiring, num_layers=2, unroll=True)
    unrolled.set_weights(layer.get_weights())
    inputs, memory = inputs_of(wiring)

    np.testing.assert_allclose(
        unrolled(inputs, memory, memory_mask=mask_of(wiring)),
        layer(inputs, memory, memory_mask=mask_of(wiring)),
        atol=1e-6,
    )


@pytest.mark.skipif(not TENSORFLOW, reason="XLA has its limits on TensorFlow")
@pytest.mark.parametrize(
    ("wiring", "attention"),
    [
        slow("feeding", LuongAttention("general")),
        slow("luong", LuongAttention("dot")),
        slow("bahdanau", BahdanauAttention(units=3, use_bias=True)),
        slow("bahdanau", LocationAwareAttention(3, 2, kernel_size=3)),
        slow("feeding", LocationAttention(max_length=5)),
        ("feeding", LocalAttention("dot", window=1, alignment="monotonic")),
        slow("luong", LocalAttention(window=2)),
        slow("none", None),
    ],
)
def test_gradients_with_xla(seed, wiring, attention):
    """Also of a function that is traced for sizes that are not known yet."""
    import tensorflow as tf

    layer = built(wiring, attention=attention)
    inputs, memory = map(tf.constant, inputs_of(wiring))

    def step(inputs, memory, mask):
        weights = [weight.value for weight in layer.trainable_weights]
        with tf.GradientTape() as tape:
            tape.watch([inputs, memory])
            outputs = layer(inputs, memory, memory_mask=mask)
            loss = tf.reduce_sum(tf.sin(outputs))
        return outputs, tape.gradient(loss, [inputs, memory, *weights])

    time = 1 if wiring == "none" else None
    by_xla = tf.function(
        step,
        jit_compile=True,
        autograph=False,
        input_signature=[
            tf.TensorSpec((None, None, 4)),
            tf.TensorSpec((None, time, 6)),
            tf.TensorSpec((None, time), tf.bool),
        ],
    )
    arguments = inputs, memory, tf.constant(mask_of(wiring))
    keras.tree.map_structure(
        functools.partial(np.testing.assert_allclose, atol=1e-5),
        by_xla(*arguments),
        step(*arguments),
    )


@pytest.mark.skipif(not TENSORFLOW, reason="cuDNN is used on TensorFlow")
@pytest.mark.parametrize(
    ("wiring", "cells"),
    [("luong", 2), ("none", 2), slow("feeding", 0), slow("bahdanau", 0)],
)
def test_cudnn_runs_what_feeds_nothing_back(seed, request, wiring, cells):
    """Values and gradients are those of a CPU."""
    import tensorflow as tf

    layer = built(wiring, num_layers=2)
    inputs, memory = map(tf.constant, inputs_of(wiring))
    state = keras.tree.map_structure(tf.constant, state_of(layer))
    weights = [weight.value for weight in layer.trainable_weights]

    def outputs_and_gradients():
        with tf.GradientTape() as tape:
            tape.watch([inputs, memory, state])
            outputs = layer(
                inputs,
                memory,
                memory_mask=mask_of(wiring),
                initial_state=state,
            )
            loss = tf.reduce_sum(tf.sin(outputs))
        sources = [inputs, memory, state, weights]
        return outputs, tape.gradient(loss, sources)

    expected = outputs_and_gradients()
    assert not layer.uses_cudnn
    by_cudnn = request.getfixturevalue("simulated_gpu")
    keras.tree.map_structure(
        functools.partial(np.testing.assert_allclose, atol=1e-5),
        outputs_and_gradients(),
        expected,
    )
    assert by_cudnn == ["lstm"] * cells
    assert layer.uses_cudnn == bool(cells)
    assert not make(wiring, cell="gru").uses_cudnn
    assert layer(inputs[:0], memory[:0]).shape == (0, 5, 6)


# Influence.


def test_later_inputs_change_nothing(wiring):
    layer = built(wiring, num_layers=2)
    inputs, memory = inputs_of(wiring)
    outputs = numpy_of(layer(inputs, memory, memory_mask=mask_of(wiring)))
    inputs[:, 3] += 1
    changed = numpy_of(layer(inputs, memory, memory_mask=mask_of(wiring)))

    np.testing.assert_array_equal(changed[:, :3], outputs[:, :3])
    assert (changed[:, 3:] != outputs[:, 3:]).any(axis=-1).all()


@pytest.mark.skipif(not TENSORFLOW, reason="a tape is TensorFlow's")
def test_everything_has_a_gradient(wiring):
    import tensorflow as tf

    layer = built(wiring, num_layers=2, dropout=0.1)
    inputs, memory = (tf.constant(x) for x in inputs_of(wiring))
    with tf.GradientTape() as tape:
        tape.watch([inputs, memory])
        loss = tf.reduce_sum(layer(inputs, memory, training=True) ** 2)
    gradients = tape.gradient(loss, [inputs, memory, *layer.trainable_weights])

    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


def test_dropout_only_in_training(wiring):
    layer = built(wiring, num_layers=2, dropout=0.5)
    inputs, memory = inputs_of(wiring)
    outputs = numpy_of(layer(inputs, memory))

    np.testing.assert_array_equal(layer(inputs, memory), outputs)
    dropped = numpy_of(layer(inputs, memory, training=True))
    assert (dropped == 0).any() and not (outputs == 0).any()


# Errors.


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"units": 0}, "Received: units=0"),
        ({"num_layers": 0}, "Received: num_layers=0"),
        ({"cell": "rnn"}, "Received: cell='rnn'"),
        ({"order": "chan"}, "Received: order='chan'"),
        ({"attention": "dot"}, "attention must be an attention layer"),
        ({"attention": None, "input_feeding": True}, "needs attention"),
        ({"order": "bahdanau", "input_feeding": True}, 'order="luong"'),
        ({"attention": LocationAwareAttention(3)}, 'set order="bahdanau" or'),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    defaults = {"units": 6, "attention": LuongAttention("dot")}
    with pytest.raises(ValueError, match=message):
        AttentionDecoder(**defaults | arguments)


def test_without_attention_the_memory_is_one_vector():
    with pytest.raises(ValueError, match="one vector"):
        make("none")(np.ones((2, 5, 4)), np.ones((2, 7, 6)))


def test_a_loop_of_unknown_length_is_not_unrolled():
    with pytest.raises(ValueError, match="Received: unroll=True"):
        make("luong", unroll=True)(keras.Input((None, 4)), keras.Input((7, 6)))


def test_without_attention_there_are_no_weights():
    with pytest.raises(ValueError, match="no attention weights"):
        make("none")(
            np.ones((2, 5, 4)), np.ones((2, 1, 6)), return_weights=True
        )


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_an_initial_state_has_a_list_of_each_part(cell):
    """The states of `keras.layers.LSTM` are one list; a tensor has rows."""
    layer, state = make("luong", cell=cell), normal(2, 6)
    cells = [state] if cell == "lstm" else []
    fits = {"hidden": [state], "cell": cells}
    wrong = [
        [state, state],
        {**fits, "hidden": state},
        {"hidden": [state], "cell": [state, state]},
        {"hidden": [state, state], "cell": cells * 2},
        {"h": [state]},
    ]
    for initial_state in wrong:
        with pytest.raises(ValueError, match="initial_state must be"):
            layer(*inputs_of("luong"), initial_state=initial_state)
    layer(*inputs_of("luong"), initial_state=fits)
