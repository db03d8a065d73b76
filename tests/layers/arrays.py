"""Random inputs and float32 outputs."""

import keras
import numpy as np


def normal(*shape):
    return np.random.normal(size=shape).astype("float32")


def numpy_of(tensor):
    return keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32"))


def randomize(layer, scale=1.0):
    """Assigns normal values to the trainable weights, in place."""
    for weight in layer.trainable_weights:
        weight.assign(scale * normal(*weight.shape))
    return layer
