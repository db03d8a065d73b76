"""A bidirectional recurrent layer."""

import weakref

import keras

_given = weakref.WeakKeyDictionary()


def both_directions(layer, **kwargs):
    """`keras.layers.Bidirectional` that also loads reliably from a file.

    Keras builds both directions from the config of `layer`, and then drops it.
    While `keras.saving.load_model` runs, Keras takes configs of the same object
    id for the same layer; but once an object has been collected, a new one can
    get its id. The two directions, or those of two layers, can then turn out to
    be one layer. Here, `layer` lives as long as the result.

    Args:
        layer: a recurrent layer.
        **kwargs: see `keras.layers.Bidirectional`.
    """
    both = keras.layers.Bidirectional(layer, **kwargs)
    _given[both] = layer
    return both
