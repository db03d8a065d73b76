"""Self-attention within a window, in blocks."""

import keras
from keras import ops

from kseq.ops.attention import (
    masked_softmax,
    scaled_dot_energies,
    weighted_sum,
)
from kseq.ops.blockwise_attention import is_long
from kseq.ops.masks import causal_mask, window_mask


def windowed_attention(
    queries, keys, values, window, mask=None, causal=False, dropout=None
):
    """Scaled dot-product attention to the positions that are near.

    Time and memory grow with T times `window`, not with T squared: the
    positions are cut into blocks of the length of the window, and each block
    attends to itself and to its neighbours. Of long sequences the gradient
    computes the weights again, so that each layer keeps its inputs only.

    Args:
        queries: (B, N, T, H) float.
        keys: (B, N, T, H) float.
        values: (B, N, T, H) float.
        window: int, largest distance between a query and what it attends to.
        mask: (B, T) bool, True at keys that may be attended to, or None.
        causal: bool, whether to mask later positions.
        dropout: function of weights and a number, which drops the same weights
            whenever it is called, or None.

    Returns:
        (B, N, T, H): the same as that of all positions under a mask. Zeros
        where all keys are masked.

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 4; in blocks as in
        Beltagy et al. 2020, arXiv:2004.05150, section 3.
    """
    time = ops.shape(queries)[2]
    least, most = (
        (ops.minimum, ops.maximum) if ops.is_tensor(time) else (min, max)
    )
    length = most(least(time, window), 1)
    blocks = (time + length - 1) // length
    missing = blocks * length - time
    if mask is None:
        mask = ops.ones((ops.shape(queries)[0], time), dtype="bool")
    mask = ops.expand_dims(ops.expand_dims(mask, 1), -1)  # (B, 1, T, 1)

    def cut(x):  # (B, N, T, H) -> (B, N, blocks, length, H)
        shape = ops.shape(x)
        padding = ops.zeros((*shape[:2], missing, shape[3]), dtype=x.dtype)
        x = ops.concatenate([x, padding], axis=2)
        return ops.reshape(x, (*shape[:2], blocks, length, shape[3]))

    def with_neighbours(x):  # ... -> (B, N, blocks, 2 or 3 * length, H)
        none = ops.zeros_like(x[:, :, :1])
        parts = [ops.concatenate([none, x[:, :, :-1]], axis=2), x]
        if not causal:
            parts.append(ops.concatenate([x[:, :, 1:], none], axis=2))
        return ops.concatenate(parts, axis=3)

    # Of the positions of a block, beside a block before it and one after.
    if causal:
        near = window_mask(length, 2 * length, window)
        near = ops.logical_and(near, causal_mask(length, 2 * length))
    else:
        near = window_mask(2 * length, 3 * length, window)[:length]
    real = ops.swapaxes(with_neighbours(cut(mask)), -1, -2)
    admitted = ops.logical_and(near, real)

    def attend(queries, keys, values):
        energies = scaled_dot_energies(cut(queries), with_neighbours(cut(keys)))
        weights = masked_softmax(energies, admitted)
        if dropout is not None:
            weights = dropout(weights, 0)
        context = weighted_sum(weights, with_neighbours(cut(values)))
        shape = ops.shape(context)
        context = ops.reshape(context, (*shape[:2], blocks * length, shape[4]))
        return context[:, :, :time]

    if is_long(time, (2 if causal else 3) * length):
        attend = keras.remat(attend)
    return attend(queries, keys, values)
