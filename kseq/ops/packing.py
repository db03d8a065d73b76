"""Sequences whose padding is moved to the end, and back."""

import keras
from keras import ops

from kseq.ops.masks import range_of

# On a GPU, TensorFlow computes int32 on the host.
_PLACES = "int64" if keras.backend.backend() == "tensorflow" else "int32"


def real_first(mask):
    """The real positions of each row, then the others, each in order.

    (B, T) bool -> (B, T) int.

    >>> real_first(np.array([[False, True, False, True]])).numpy()
    array([[1, 3, 0, 2]])
    """
    time = ops.shape(mask)[1]
    places = range_of(time, _PLACES)
    moved = ops.where(mask, places, places + ops.cast(time, _PLACES))
    return ops.cast(ops.argsort(moved, axis=1), _PLACES)


def take_steps(x, places):
    """Row b, step t is x[b, places[b, t]]. (B, S, D), (B, T) -> (B, T, D).

    >>> take_steps(np.array([[[5.0], [6.0]]]), np.array([[1, 1, 0]])).numpy()
    array([[[6.],
            [6.],
            [5.]]])
    """
    batch, time, size = ops.shape(x)
    before = range_of(batch, _PLACES) * ops.cast(time, _PLACES)
    flat = ops.reshape(x, (batch * time, size))
    return ops.take(flat, before[:, None] + ops.cast(places, _PLACES), axis=0)
