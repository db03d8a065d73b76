"""A GPU as Keras sees it, on a machine that has none."""

import pytest
import tensorflow as tf


@pytest.fixture
def reported_gpu(monkeypatch):
    """TensorFlow reports a GPU: graphs are traced for it, but cannot run."""
    list_devices = tf.config.list_logical_devices

    def with_gpu(device_type=None):
        gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
        gpus = [gpu] if device_type in (None, "GPU", "gpu") else []
        return [*list_devices(device_type), *gpus]

    monkeypatch.setattr(tf.config, "list_logical_devices", with_gpu)


@pytest.fixture
def simulated_gpu(reported_gpu, monkeypatch):
    """A GPU whose cuDNN computes, and refuses what that of a GPU does.

    Returns:
        A list, to which each call that is traced adds the name of its cell.
    """
    cells = []

    def noted(**arguments):
        cells.append(arguments["rnn_mode"])
        return _cudnn_rnn(**arguments)

    monkeypatch.setattr(tf.raw_ops, "CudnnRNNV3", noted)
    return cells


def _cudnn_rnn(
    *,
    input,
    input_h,
    input_c,
    params,
    is_training,
    rnn_mode,
    sequence_lengths,
    time_major,
):
    """`tf.raw_ops.CudnnRNNV3` as Keras calls it, by other operations.

    The order of `params` and what the operation refuses are those of cuDNN.
    """
    assert is_training and not time_major
    rows, time, features = tf.unstack(tf.shape(input))
    units = tf.shape(input_h)[-1]
    with tf.control_dependencies(
        [
            tf.debugging.assert_positive(
                tf.stack([rows, time, features, units]),
                "CUDNN_STATUS_BAD_PARAM in cudnnSetTensorNdDescriptor",
            ),
            tf.debugging.assert_equal(tf.shape(sequence_lengths), [rows]),
            tf.debugging.assert_positive(sequence_lengths),
            tf.debugging.assert_less_equal(sequence_lengths, time),
            tf.debugging.assert_equal(tf.shape(input_h), [rows, 1, units]),
        ]
    ):
        hidden = tf.identity(input_h)[:, 0]
    cell = input_c[:, 0] if rnn_mode == "lstm" else tf.zeros_like(hidden)

    gates = {"lstm": 4, "gru": 3}[rnn_mode]
    sizes = gates * [units * features] + gates * [units * units]
    parts = tf.split(params, sizes + 2 * gates * [units], num=4 * gates)
    kernels, recurrent, of_inputs, of_states = (
        parts[start : start + gates] for start in range(0, 4 * gates, gates)
    )
    projected = [
        tf.einsum("btf,uf->tbu", input, tf.reshape(kernel, (units, features)))
        + bias
        for kernel, bias in zip(kernels, of_inputs, strict=True)
    ]
    recurrent = [tf.reshape(kernel, (units, units)) for kernel in recurrent]
    step = {"lstm": _lstm_step, "gru": _gru_step}[rnn_mode]

    def body(state, inputs):
        place, *inputs = inputs
        before = state[:2]
        from_state = [
            tf.matmul(before[0], kernel, transpose_b=True) + bias
            for kernel, bias in zip(recurrent, of_states, strict=True)
        ]
        after = step(inputs, from_state, *before)
        is_real = (place < sequence_lengths)[:, None]
        after = [
            tf.where(is_real, new, old)
            for new, old in zip(after, before, strict=True)
        ]
        output = tf.where(is_real, after[0], tf.zeros_like(after[0]))
        return (*after, output)

    hiddens, cells, outputs = tf.scan(
        body,
        (tf.range(time), *projected),
        (hidden, cell, tf.zeros_like(hidden)),
    )
    outputs = tf.transpose(outputs, (1, 0, 2))
    outputs.set_shape((*input.shape[:2], input_h.shape[-1]))
    reserved = tf.zeros(0, input.dtype), tf.zeros(0, tf.int8)
    return outputs, hiddens[-1][:, None], cells[-1][:, None], *reserved


def _lstm_step(inputs, from_state, hidden, cell):
    i, f, c, o = (x + h for x, h in zip(inputs, from_state, strict=True))
    cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(c)
    return tf.sigmoid(o) * tf.tanh(cell), cell


def _gru_step(inputs, from_state, hidden, cell):
    reset, update = (
        tf.sigmoid(x + h)
        for x, h in zip(inputs[:2], from_state[:2], strict=True)
    )
    candidate = tf.tanh(inputs[2] + reset * from_state[2])
    return update * hidden + (1 - update) * candidate, cell
