"""Weights that a SavedModel stores in fewer bits than it computes with."""

import math
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

if TYPE_CHECKING:  # an export is loaded without Keras
    import keras

DTYPES = ("bfloat16", "int8")
_LEAST = 1024  # values; smaller matrices take no room


class StoredWeight(tf.saved_model.experimental.TrackableResource):
    """A float32 variable, stored in bfloat16 or int8 by `tf.saved_model.save`.

        stored = round(weight / scale), scale = max |weight| / 127

    in int8, with a scale for each output of a matrix, or for each row of an
    embedding; zero stays zero. It becomes float32 once, when it is loaded, so
    the graph is as fast as before, and takes no less memory.

    In the SavedModel it is in the place of the variable, which must not be
    tracked. The variable itself keeps its values.

    Args:
        variable: `keras.Variable` of floats, see `can_store`.
        dtype: "bfloat16" or "int8".
        name: str, of no other one in the SavedModel.

    Attributes:
        parts: list of `tf.Variable`, which are to be tracked.
    """

    def __init__(self, variable: "keras.Variable", dtype: str, name: str):
        super().__init__()
        self._resource_handle = variable.value.handle
        self._shape = variable.shape
        self._name = name
        values = np.array(variable.value, np.float32)
        if dtype == "bfloat16":
            parts = [tf.cast(values, tf.bfloat16)]
        else:
            parts = _in_8_bits(values, by_row=variable.name == "embeddings")
        self.parts = [tf.Variable(part, trainable=False) for part in parts]

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(
            dtype=tf.float32, shape=self._shape, shared_name=self._name
        )

    def _initialize(self):
        value, *scale = (tf.cast(part, tf.float32) for part in self.parts)
        tf.raw_ops.AssignVariableOp(
            resource=self.resource_handle,
            value=value * scale[0] if scale else value,
        )


def free_with(signatures: Iterable[Any], stored: Iterable[Any]) -> None:
    """Frees the float32 variables of a loaded SavedModel.

    TensorFlow would free them together with the loaded object, even while a
    signature is used that needs them. So the SavedModel itself frees nothing.

    Args:
        signatures: list of functions; it happens once none is left.
        stored: iterable of what was loaded for each `StoredWeight`.
    """
    keeper = _Keeper()
    for signature in signatures:
        signature.keeper = keeper
    handles = [weight.resource_handle for weight in stored]
    weakref.finalize(keeper, _free, handles).atexit = False


class _Keeper:
    """What all signatures of a SavedModel refer to."""


def _free(handles):
    # Garbage is collected at any time, even while a function is traced, which
    # would get the operations.
    with context.eager_mode():
        for handle in handles:
            tf.raw_ops.DestroyResourceOp(resource=handle)


def can_store(variable: "keras.Variable") -> bool:
    """Whether a variable is a matrix, and large: no bias and no norm."""
    return (
        len(variable.shape) > 1
        and variable.dtype == "float32"
        and math.prod(variable.shape) >= _LEAST
    )


def _in_8_bits(values, by_row):
    axes = tuple(range(values.ndim))
    axes = axes[1:] if by_row else axes[:-1]
    scale = np.max(np.abs(values), axis=axes, keepdims=True) / 127
    stored = np.round(values / np.where(scale == 0, 1, scale))
    return [tf.cast(stored, tf.int8), scale]
