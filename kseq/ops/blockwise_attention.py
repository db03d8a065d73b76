"""Attention of long sequences, one block of queries after the other."""

import contextlib
import functools
import threading

import keras
from keras import ops

from kseq.ops.attention import (
    dot_energies,
    masked_softmax,
    scaled_dot_energies,
    weighted_sum,
)
from kseq.ops.masks import causal_mask

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    # Or TensorFlow begins ten blocks at once, and has the energies of all.
    _while_loop = functools.partial(tf.while_loop, parallel_iterations=1)
else:
    _while_loop = ops.while_loop

BLOCK = 256  # queries whose energies are in memory at once
_LONG = 1024
_assumed = {"long": False}
_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def long_sequences(are_long):
    """Sets whether sequences of unknown lengths are taken to be long.

    A graph that serves every length cannot look at them while it is traced.
    """
    # For all threads: a strategy traces each replica in its own.
    with _one_at_a_time:
        before, _assumed["long"] = _assumed["long"], are_long
        try:
            yield
        finally:
            _assumed["long"] = before


def is_long(query_length, memory_length):
    """Whether attention is in blocks, because there are many energies.

    Args:
        query_length: int, or a tensor where it is unknown, T.
        memory_length: int, or a tensor where it is unknown, S.

    Returns:
        bool.
    """
    if isinstance(query_length, int) and isinstance(memory_length, int):
        return query_length * memory_length >= _LONG**2
    return _assumed["long"]


def blockwise_attention(
    queries, keys, values, mask=None, causal=False, dropout=None, block=BLOCK
):
    """Scaled dot-product attention with memory that is linear in length.

    The energies of one block of queries are in memory at a time, and none are
    kept for the gradient, which computes them again: T times S numbers are
    never needed at once, but `block` times S.

    Args:
        queries: (B, N, T, H) float.
        keys: (B, N, S, H) float.
        values: (B, N, S, H) float.
        mask: (B, S) bool, True at keys that may be attended to, or None.
        causal: bool, whether to mask later positions. The queries are the last
            T of the S positions.
        dropout: function of weights and the number of their block, which
            drops the same weights whenever it is called, or None.
        block: int, queries of a block.

    Returns:
        (B, N, T, H): the same as that of all queries together. Zeros where
        all keys are masked.

    Reference:
        Rabe and Staats 2021, arXiv:2112.05682, with blocks of queries only;
        the gradient is that of Dao et al. 2022, arXiv:2205.14135, section 3.
    """
    loop = _Blocks(ops.shape(queries)[2], block)
    weigh = functools.partial(
        _weights, loop, mask=mask, causal=causal, dropout=dropout
    )

    @ops.custom_gradient
    def attend(queries, keys, values):
        contexts = _contexts(loop, weigh, queries, keys, values)

        def gradients(*args, upstream=None):
            if upstream is None:  # except in torch
                (upstream,) = args
            return _gradients(
                *(loop, weigh, queries, keys, values, contexts, upstream)
            )

        return contexts, gradients

    return attend(queries, keys, values)


class _Blocks:
    """The blocks of a time axis, of which the last one may be padded."""

    def __init__(self, time, length):
        least, most = (
            (ops.minimum, ops.maximum) if ops.is_tensor(time) else (min, max)
        )
        self.time = time
        self.length = most(least(time, length), 1)
        self.count = most((time + self.length - 1) // self.length, 1)

    def cut(self, x):
        """(B, N, T, H) -> (count, B, N, length, H)."""
        missing = self.count * self.length - self.time
        x = ops.pad(x, [[0, 0], [0, 0], [0, missing], [0, 0]])
        batch, heads, _, size = ops.shape(x)
        x = ops.reshape(x, (batch, heads, self.count, self.length, size))
        return ops.transpose(x, (2, 0, 1, 3, 4))

    def join(self, x):
        """(count, B, N, length, H) -> (B, N, T, H)."""
        _, batch, heads, _, size = ops.shape(x)
        x = ops.transpose(x, (1, 2, 0, 3, 4))
        x = ops.reshape(x, (batch, heads, self.count * self.length, size))
        return x[:, :, : self.time]

    def each(self, function, like, *sums):
        """What a function returns of all blocks, and its last sums.

        Args:
            function: of the number of a block and the sums so far; returns a
                tensor and the next sums.
            like: (count, ...), with the shape and dtype of all its tensors.
            *sums: the first sums.
        """

        def step(number, blocks, *sums):
            block, *sums = function(number, *sums)
            place = ops.reshape(number, (1, 1))
            blocks = ops.scatter_update(blocks, place, block[None])
            return (number + 1, blocks, *sums)

        _, *results = _while_loop(
            lambda number, *_: number < self.count,
            step,
            (0, ops.zeros_like(like), *sums),
        )
        return results


def _weights(loop, number, queries, keys, mask, causal, dropout):
    """Weights in float32, and by what dropout multiplies them or None."""
    if mask is not None:
        mask = mask[:, None, None]  # (B, 1, 1, S)
    if causal:
        memory_time = ops.shape(keys)[2]
        first = memory_time - loop.time + number * loop.length
        before = causal_mask(loop.length, memory_time, first)
        mask = before if mask is None else ops.logical_and(mask, before)
    energies = ops.cast(scaled_dot_energies(queries, keys), "float32")
    weights = masked_softmax(energies, mask)  # (B, N, length, S)
    if dropout is None:
        return weights, None
    return weights, dropout(ops.ones_like(weights), number)


def _contexts(loop, weigh, queries, keys, values):
    queries = loop.cut(queries)

    def context(number):
        weights, kept = weigh(number, queries[number], keys)
        if kept is not None:
            weights = weights * kept
        return [weighted_sum(ops.cast(weights, values.dtype), values)]

    (contexts,) = loop.each(context, queries)
    return loop.join(contexts)


def _gradients(loop, weigh, queries, keys, values, contexts, upstream):
    """Of queries, keys and values, by the gradient of the contexts."""
    # For each query the sum of its weights times their gradients.
    inner = ops.cast(contexts, "float32") * ops.cast(upstream, "float32")
    inner = loop.cut(ops.sum(inner, axis=-1, keepdims=True))
    queries, upstream = loop.cut(queries), loop.cut(upstream)

    def gradients(number, of_keys, of_values):
        weights, kept = weigh(number, queries[number], keys)
        of_weights = dot_energies(upstream[number], values)
        of_weights, dropped = ops.cast(of_weights, "float32"), weights
        if kept is not None:
            of_weights, dropped = of_weights * kept, weights * kept
        of_energies = weights * (of_weights - inner[number])
        of_energies = of_energies / queries.shape[-1] ** 0.5
        of_energies = ops.cast(of_energies, keys.dtype)
        dropped = ops.cast(dropped, values.dtype)
        return (
            weighted_sum(of_energies, keys),
            of_keys + _transposed_sum(of_energies, queries[number]),
            of_values + _transposed_sum(dropped, upstream[number]),
        )

    of_queries, of_keys, of_values = loop.each(
        gradients,
        queries,
        ops.zeros_like(keys, dtype="float32"),
        ops.zeros_like(values, dtype="float32"),
    )
    return (
        loop.join(of_queries),
        ops.cast(of_keys, keys.dtype),
        ops.cast(of_values, values.dtype),
    )


def _transposed_sum(weights, x):
    """(..., T, S), (..., T, H) -> (..., S, H) float32."""
    product = ops.matmul(ops.swapaxes(weights, -1, -2), x)
    return ops.cast(product, "float32")
