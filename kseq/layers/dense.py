"""A Dense layer whose kernel is read."""

import keras


class Dense(keras.layers.Dense):
    """`keras.layers.Dense` for layers that read its kernel themselves.

    `quantize` of a Keras model makes integers of the kernels of its Dense
    layers, whose scale is elsewhere. It leaves out subclasses, and says so.
    """
