"""Recurrent layers of Keras, in one direction or in both."""

import weakref

import keras
from keras import ops

from kseq.layers.cudnn import has_cudnn, inner_loop
from kseq.user_error import ArgumentError, check_choice

# Keras sets it to False where cuDNN may run; here, `cudnn_allowed` decides.
_SUPPORTS_JIT = property(lambda layer: True, lambda layer, value: None)
_USES_CUDNN = property(lambda layer: has_cudnn())


@keras.saving.register_keras_serializable(package="kseq", name="LSTM")
class _LSTM(keras.layers.LSTM):
    """The layer of Keras, run by cuDNN with any mask."""

    inner_loop = inner_loop
    supports_jit = _SUPPORTS_JIT
    uses_cudnn = _USES_CUDNN


@keras.saving.register_keras_serializable(package="kseq", name="GRU")
class _GRU(keras.layers.GRU):
    """The layer of Keras, run by cuDNN with any mask."""

    inner_loop = inner_loop
    supports_jit = _SUPPORTS_JIT
    uses_cudnn = _USES_CUDNN


_LAYERS = {
    "lstm": _LSTM,
    "gru": _GRU,
    "tanh": keras.layers.SimpleRNN,  # cuDNN is not used for it
}


def recurrent_layer(cell, units, dtype, **kwargs):
    """Creates a recurrent layer that returns its states at all steps.

    It takes any mask and batches without rows, also on a GPU.

    Raises:
        ArgumentError: if `cell` is none of them.
    """
    check_choice("cell", cell, list(_LAYERS))
    # The orthogonal initializer does not exist in half precision.
    is_half = dtype.variable_dtype in ("float16", "bfloat16")
    return _LAYERS[cell](
        units,
        recurrent_initializer="glorot_uniform" if is_half else "orthogonal",
        return_sequences=True,
        dtype=dtype,
        **kwargs,
    )


def check_two_directions(units):
    """Raises ArgumentError unless two directions can have half of it each."""
    if units % 2:
        raise ArgumentError(
            f"units must be even for two directions. Received: units={units}"
        )


def states_of_both(states):
    """The last states of two directions, each (B, U / 2), as those of one.

    Those of the first come before: [hidden], or [hidden, cell], of each.
    """
    half = len(states) // 2
    return [
        ops.concatenate(both, axis=-1)
        for both in zip(states[:half], states[half:], strict=True)
    ]


_given: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def bidirectional_layer(layer, **kwargs):
    """`keras.layers.Bidirectional` that also loads reliably from a file.

    Keras builds both directions from the config of `layer`, and then drops it.
    While `keras.saving.load_model` runs, Keras takes configs of the same object
    id for the same layer; but once an object has been collected, a new one can
    get its id. The two directions, or those of two layers, can then turn out to
    be one layer. Here, `layer` lives as long as the result.
    """
    both = keras.layers.Bidirectional(layer, **kwargs)
    _given[both] = layer
    return both
