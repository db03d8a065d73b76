"""A Dense layer whose kernel is read."""

import keras


class Dense(keras.layers.Dense):
    """The layer of Keras, for where its kernel is read, not only called.

    `quantize` of a Keras model makes integers of the kernels of its Dense
    layers, whose scale is elsewhere. It leaves out subclasses, and says so.
    """
