"""A recurrent layer of Keras by the name of its cell."""

import keras

from kseq.user_error import ArgumentError

_CELLS = {
    "lstm": keras.layers.LSTM,
    "gru": keras.layers.GRU,
    "tanh": keras.layers.SimpleRNN,
}


def recurrent_layer(cell, units, dtype, **kwargs):
    """Creates a recurrent layer that returns its states at all steps.

    Args:
        cell: "lstm", "gru" or "tanh".
        units: int.
        dtype: dtype policy.
        **kwargs: see the layer.

    Raises:
        ArgumentError: if `cell` is none of them.
    """
    if cell not in _CELLS:
        raise ArgumentError(
            f"cell must be one of {list(_CELLS)}. Received: cell={cell!r}"
        )
    # The orthogonal initializer does not exist in half precision.
    is_half = dtype.variable_dtype in ("float16", "bfloat16")
    return _CELLS[cell](
        units,
        recurrent_initializer="glorot_uniform" if is_half else "orthogonal",
        return_sequences=True,
        dtype=dtype,
        **kwargs,
    )
