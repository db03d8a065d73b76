"""cuDNN, with which Keras runs LSTMs and GRUs on a GPU."""

import contextlib
import contextvars
import functools

import keras
from keras import ops
from keras.src import backend  # what Keras itself asks about cuDNN

from kseq.ops import real_first, take_steps

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


def inner_loop(layer, of_keras, sequences, states, mask, training):
    """The `inner_loop` of a recurrent layer, with any mask on any device.

    cuDNN reads rows that begin with their real positions, one at least, and no
    batch without rows. What it is given is packed, and its outputs are
    unpacked: a layer on a GPU computes what it computes on a CPU.

    Args:
        layer: `keras.layers.LSTM` or `keras.layers.GRU`.
        of_keras: the `inner_loop` that it has in Keras.
        sequences: (B, T, D) float, T at least 1.
        states: list of (B, U) float.
        mask: (B, T) bool, True at real positions; or None.
        training: bool.

    Returns:
        The last output, (B, U), all outputs, (B, T, U), and the last states.
    """
    loop = functools.partial(of_keras, training=training)
    is_allowed = cudnn_is_allowed()
    if is_allowed and runs_by_cudnn(layer):
        return _packed_loop(layer, loop, sequences, states, mask)
    if not is_allowed or mask is not None:
        loop = functools.partial(
            keras.layers.RNN.inner_loop, layer, training=training
        )
    return loop(sequences, states, mask)


def runs_by_cudnn(layer):
    """Whether cuDNN runs a recurrent layer of kseq on this machine."""
    cell = layer.cell
    return (
        # With other backends, Keras runs a layer that has a mask without it.
        keras.backend.backend() == "tensorflow"
        and layer.use_cudnn
        and layer.return_sequences
        and not (cell.dropout or cell.recurrent_dropout)
        and backend.cudnn_ok(
            cell.activation,
            cell.recurrent_activation,
            layer.unroll,
            cell.use_bias,
            getattr(cell, "reset_after", None),
        )
    )


def has_cudnn():
    """Whether cuDNN runs an LSTM on this machine."""
    return keras.backend.backend() == "tensorflow" and backend.cudnn_ok(
        *_LSTM_ACTIVATIONS, unroll=False, use_bias=True
    )


def cudnn_is_allowed():
    """Whether cuDNN may run what is called here.

    Not within `without_cudnn`, and not in what XLA compiles, which has no
    `CudnnRNNV3`.
    """
    if not _is_allowed.get() or keras.backend.backend() != "tensorflow":
        return False
    from tensorflow.python.framework import ops as framework
    from tensorflow.python.ops import control_flow_util

    return not control_flow_util.GraphOrParentsInXlaContext(
        framework.get_default_graph()
    )


def lstm_by_cudnn(terms, recurrent_kernel, bias, hidden, cell):
    """All hidden states of an LSTM, (B, T, U).

    Args:
        terms: list of (inputs, kernel), (B, T, D) float and (D, 4 U) float,
            whose products are summed; after the first, also (B, 1, D).
        recurrent_kernel: (U, 4 U) float.
        bias: (4 U,) float.
        hidden: (B, U) float, before the first step.
        cell: (B, U) float.
    """
    (inputs, kernel), *others = terms
    rows, time, _ = ops.shape(inputs)
    for values, of_values in others:
        values = ops.broadcast_to(values, (rows, time, values.shape[-1]))
        inputs = ops.concatenate([inputs, values], axis=-1)
        kernel = ops.concatenate([kernel, of_values], axis=0)
    _, outputs, _ = backend.lstm(
        *map(_with_a_row, (inputs, hidden, cell)),
        None,
        kernel,
        recurrent_kernel,
        bias,
        *_LSTM_ACTIVATIONS,
        return_sequences=True,
    )
    return outputs[:rows]


def _packed_loop(layer, loop, sequences, states, mask):
    rows, time = ops.shape(sequences)[:2]
    packed, packed_mask = sequences, None
    if mask is not None:
        mask = ops.cast(mask, "bool")
        # On a GPU, TensorFlow computes with int32 on the host.
        lengths = ops.sum(ops.cast(mask, "int64"), axis=1)
        packed = take_steps(sequences, real_first(mask))
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
    outputs = take_steps(outputs, ops.clip(places, 0, time - 1))
    has_output = mask if layer.zero_output_for_mask else read > 0
    return ops.where(has_output[..., None], outputs, ops.zeros_like(outputs))
