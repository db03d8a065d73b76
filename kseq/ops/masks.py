"""Masks of sequences, True at positions that count, and packing."""

import keras
from keras import ops

from kseq.control_tokens import END, PAD, START

# Of positions. On a GPU, TensorFlow computes int32 on the host. A float that is
# given to a layer becomes its dtype, and half precision has few integers.
PLACES = "int64" if keras.backend.backend() == "tensorflow" else "int32"


def padding_mask(ids):
    """True at real tokens. (B, T) int -> (B, T) bool."""
    return ops.not_equal(ids, PAD)


def start_mask(ids):
    """True at START. (...) int -> (...) bool."""
    return ops.equal(ids, START)


def end_mask(ids):
    """True at END. (...) int -> (...) bool."""
    return ops.equal(ids, END)


def right_align(ids):
    """Moves the padding at the end of each row before its tokens.

    (B, T) int -> (B, T) int.

    >>> right_align(np.array([[5, 6, 0, 0]])).numpy()
    array([[0, 0, 5, 6]])
    """
    time = ops.shape(ids)[1]
    real = ops.cast(padding_mask(ids), "int32")
    padding = time - ops.sum(real, axis=1, keepdims=True)  # (B, 1)
    places = ops.arange(time, dtype="int32")[None] - padding
    aligned = ops.take_along_axis(ids, ops.maximum(places, 0), axis=1)
    return ops.where(places < 0, PAD, aligned)


def distances(query_length, memory_length, first=None):
    """Distance from each query back to each memory position, (T, S) float32.

    The queries begin at position `first`. By default they are the last T of
    the S positions, since a cache holds the earlier ones. Distances are floats
    because TensorFlow computes with int32 on the CPU, also for a GPU.
    """
    if first is None:
        first = memory_length - query_length
    query = range_of(query_length, "float32") + ops.cast(first, "float32")
    return query[:, None] - range_of(memory_length, "float32")[None, :]


def range_of(length, dtype):
    """`ops.arange` cast to a dtype, without a copy of the limit from a GPU.

    TensorFlow casts a limit to the dtype of the range and reads it on the host.
    """
    return ops.cast(ops.arange(length, dtype="int32"), dtype)


def causal_mask(query_length, memory_length, first=None):
    """True where the memory is not later than the query, (T, S) bool."""
    return distances(query_length, memory_length, first) >= 0


def window_mask(query_length, memory_length, window):
    """True where memory and query are at most `window` apart, (T, S) bool."""
    return ops.abs(distances(query_length, memory_length)) <= window


def last_mask(mask, window):
    """True at the last `window` real states of each row, (B, S) bool."""
    real = ops.cast(mask, "int32")
    after = ops.sum(real, axis=-1, keepdims=True) - ops.cumsum(real, axis=-1)
    return ops.logical_and(mask, after < window)


def masked_mean(values, mask):
    """Mean of the real positions, 0 if there are none, computed in float32.

    (B, S, D), (B, S) bool -> (B, D).
    """
    real = ops.cast(mask, "float32")[:, :, None]
    total = ops.sum(ops.cast(values, "float32") * real, axis=1)
    count = ops.maximum(ops.sum(real, axis=1), 1.0)
    return ops.cast(total / count, values.dtype)


def masked(x, mask):
    """0 where the mask is False. (B, S, ...), (B, S) bool -> (B, S, ...)."""
    axes = tuple(range(len(mask.shape), len(x.shape)))
    return x * ops.cast(ops.expand_dims(mask, axes), x.dtype)


def packing_order(mask):
    """The real positions of each row, then the others, each in order.

    (B, T) bool -> (B, T) int.

    >>> packing_order(np.array([[False, True, False, True]])).numpy()
    array([[1, 3, 0, 2]])
    """
    time = ops.shape(mask)[1]
    places = range_of(time, PLACES)
    moved = ops.where(mask, places, places + ops.cast(time, PLACES))
    return ops.cast(ops.argsort(moved, axis=1), PLACES)


def gather_steps(x, places):
    """Row b, step t is x[b, places[b, t]]. (B, S, D), (B, T) -> (B, T, D).

    >>> gather_steps(np.array([[[5.0], [6.0]]]), np.array([[1, 1, 0]])).numpy()
    array([[[6.],
            [6.],
            [5.]]])
    """
    batch, time, size = ops.shape(x)
    before = range_of(batch, PLACES) * ops.cast(time, PLACES)
    flat = ops.reshape(x, (batch * time, size))
    return ops.take(flat, before[:, None] + ops.cast(places, PLACES), axis=0)
