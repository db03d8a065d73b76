"""A bidirectional recurrent layer."""

import weakref

import keras
from keras import ops

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


def never_empty(mask):
    """A mask whose rows all have a real position, since cuDNN refuses others.

    Args:
        mask: (B, T) bool.

    Returns:
        (B, T) bool, also True at the first position of rows without any.
    """
    # Of unknown length in a functional model.
    places = ops.cumsum(ops.ones_like(mask, dtype="int32"), axis=1)
    first = ops.equal(places, 1)
    is_empty = ops.logical_not(ops.any(mask, axis=1, keepdims=True))
    return ops.logical_or(mask, ops.logical_and(first, is_empty))
