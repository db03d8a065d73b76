"""cuDNN, with which Keras runs LSTMs and GRUs on a GPU."""

import contextlib
import contextvars
import functools

import keras
from keras import ops
from keras.src import backend  # what Keras itself asks about cuDNN

from kseq.layers.xla import is_compiled_by_xla
from kseq.ops import gather_steps, gru_over_time, lstm_over_time, packing_order

_LSTM_ACTIVATIONS = keras.activations.tanh, keras.activations.sigmoid
_is_allowed = contextvars.ContextVar("cudnn_is_allowed", default=True)


@contextlib.contextmanager
def without_cudnn():
    """Recurrent layers that are called within it run on every device.

    Beside a GPU, Keras writes `CudnnRNNV3` into each graph that it traces.
    This operation has no kernel for a CPU, so that such a graph runs on no
    other machine.
    """
    token = _is_allowed.set(False)
    try:
        yield
    finally:
        _is_allowed.reset(token)


def inner_loop(layer, sequences, initial_state, mask, training=False):
    """The `inner_loop` of a recurrent layer, with any mask on any device.

    cuDNN reads rows that begin with their real positions, one at least, and no
    batch without rows. What it is given is packed, and its outputs are
    unpacked: a layer on a GPU computes what it computes on a CPU.

    Args:
        layer: `keras.layers.LSTM` or `keras.layers.GRU` with the options that
            cuDNN has, which returns sequences.
        sequences: (B, T, D) float, T at least 1.
        initial_state: list of (B, U) float.
        mask: (B, T) bool, True at real positions; or None.
        training: bool.

    Returns:
        The last output, (B, U), all outputs, (B, T, U), and the last states.
    """
    is_gru = hasattr(layer.cell, "reset_after")
    of_keras = keras.layers.GRU if is_gru else keras.layers.LSTM
    if keras.backend.backend() != "tensorflow":
        # There, Keras runs a layer that has a mask without cuDNN.
        kind = of_keras if mask is None else keras.layers.RNN
        return kind.inner_loop(
            layer, sequences, initial_state, mask, training=training
        )
    if cudnn_allowed() and has_cudnn():
        loop = functools.partial(of_keras.inner_loop, layer, training=training)
        return _packed_loop(layer, loop, sequences, initial_state, mask)
    return _loop(layer, sequences, initial_state, mask)


def needs_cudnn(model):
    """Whether a model has recurrent layers and cuDNN runs all of them.

    Such a model is trained without XLA, which has no `CudnnRNNV3`. If it also
    has a loop, such as that of a decoder with input feeding, XLA is the choice
    for all of it: without XLA the loop starts more than a hundred kernels at
    each step, forward and backward, and a model is compiled as a whole.
    """
    recurrent = [
        getattr(layer, "uses_cudnn", False)
        for layer in model._flatten_layers()
        if hasattr(layer, "uses_cudnn") or isinstance(layer, keras.layers.RNN)
    ]
    return bool(recurrent) and all(recurrent)


def has_cudnn():
    """Whether cuDNN runs an LSTM on this machine."""
    return keras.backend.backend() == "tensorflow" and backend.cudnn_ok(
        *_LSTM_ACTIVATIONS, unroll=False, use_bias=True
    )


def cudnn_allowed():
    """Whether cuDNN may run what is called here.

    Not within `without_cudnn`, and not in what XLA compiles, which knows no
    `CudnnRNNV3`.
    """
    return _is_allowed.get() and not is_compiled_by_xla()


def cudnn_lstm(inputs, kernel, recurrent_kernel, bias, states):
    """All hidden states of an LSTM without a mask, see `lstm_over_time`."""
    rows = ops.shape(inputs)[0]
    _, outputs, _ = backend.lstm(
        *map(_with_a_row, (inputs, *states)),
        None,
        *(kernel, recurrent_kernel, bias),
        *_LSTM_ACTIVATIONS,
        return_sequences=True,
    )
    return outputs[:rows]


def _loop(layer, sequences, states, mask):
    """What Keras computes, with the product of all inputs before the loop."""
    if layer.go_backwards:
        sequences = ops.flip(sequences, axis=1)
        mask = None if mask is None else ops.flip(mask, axis=1)
    if mask is not None:
        mask = ops.cast(mask, "bool")
    cell = layer.cell
    over_time = (
        gru_over_time if hasattr(cell, "reset_after") else lstm_over_time
    )
    weights = [
        ops.convert_to_tensor(weight, dtype=cell.compute_dtype)
        for weight in (cell.kernel, cell.recurrent_kernel, cell.bias)
    ]
    outputs, last = over_time(sequences, *weights, states, mask)
    if mask is not None:
        outputs = _where_read(layer, outputs, mask)
    return last[0], outputs, last


def _packed_loop(layer, loop, sequences, states, mask):
    rows, time = ops.shape(sequences)[:2]
    packed, packed_mask = sequences, None
    if mask is not None:
        mask = ops.cast(mask, "bool")
        # On a GPU, TensorFlow computes with int32 on the host.
        lengths = ops.sum(ops.cast(mask, "int64"), axis=1)
        packed = gather_steps(sequences, packing_order(mask))
        places = ops.arange(time, dtype="int64")
        at_least_one = ops.maximum(_with_a_row(lengths), 1)
        packed_mask = places < at_least_one[:, None]

    _, outputs, last = loop(
        _with_a_row(packed), list(map(_with_a_row, states)), packed_mask
    )
    outputs, *last = (x[:rows] for x in (outputs, *last))
    if mask is not None:
        is_real = (lengths > 0)[:, None]
        last = [
            ops.where(is_real, after, before)
            for after, before in zip(last, states, strict=True)
        ]
        outputs = _unpacked(layer, outputs, mask, lengths)
    return last[0], outputs, last


def _with_a_row(x):
    """The same, or one row of zeros where there is none."""
    rows, *sizes = ops.shape(x)
    return ops.concatenate([x, ops.zeros((1, *sizes), x.dtype)[rows:]])


def _unpacked(layer, outputs, mask, lengths):
    """The output after each position, in the order of reading."""
    time = ops.cast(ops.shape(mask)[1], "int64")
    if layer.go_backwards:
        mask = ops.flip(mask, axis=1)
    read = ops.cumsum(ops.cast(mask, "int64"), axis=1)
    places = read - 1
    if layer.go_backwards:  # padding is read first
        places = places + (time - lengths)[:, None]
    outputs = gather_steps(outputs, ops.clip(places, 0, time - 1))
    return _where_read(layer, outputs, mask)


def _where_read(layer, outputs, mask):
    """Outputs, or zeros before the first real position or at all padding."""
    if not layer.zero_output_for_mask:
        # On a GPU, TensorFlow computes with int32 on the host.
        mask = ops.cumsum(ops.cast(mask, "int64"), axis=1) > 0
    return ops.where(mask[..., None], outputs, ops.zeros_like(outputs))
