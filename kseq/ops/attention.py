"""Energies, weights and contexts of attention.

Shapes: B batch, T query time, S memory time, D features. Functions of
(B, T, D) accept more leading axes, such as (B, N, T, D).
"""

import math

from keras import ops

from kseq.ops.features import project
from kseq.ops.masks import PLACES, last_mask

_MASKED = -1e30  # exp of it is zero in float32, and it is finite


def dot_energies(query, keys):
    """Query . key: (B, T, D), (B, S, D) -> (B, T, S)."""
    return ops.matmul(query, ops.swapaxes(keys, -1, -2))


def scaled_dot_energies(query, keys):
    """Query . key / sqrt(D): (B, T, D), (B, S, D) -> (B, T, S).

    The query is scaled, not the energies: it is the smaller of the two.
    """
    return dot_energies(query * (1 / math.sqrt(query.shape[-1])), keys)


def relative_energies(query, embeddings, distances):
    """Query . embedding of the distance to the key / sqrt(D).

    Args:
        query: (B, N, T, D) float.
        embeddings: (2 C + 1, D) float, of the distances -C to C. Larger ones
            count as C.
        distances: (T, S) or (B, T, S) float, from each query back to each key.

    Returns:
        (B, N, T, S), to be added to `scaled_dot_energies`.

    Reference:
        Shaw et al. 2018, arXiv:1803.02155, equation 5.
    """
    most = embeddings.shape[0] // 2
    products = scaled_dot_energies(query, embeddings)  # (B, N, T, 2 C + 1)
    places = ops.cast(ops.clip(distances, -most, most) + most, PLACES)
    # A product: TensorFlow gathers nothing from an empty tensor, and on a GPU
    # the gradient of a gather is not deterministic.
    chosen = ops.one_hot(places, 2 * most + 1, dtype=products.dtype)
    rows = "bts" if len(places.shape) == 3 else "ts"
    return ops.einsum(f"bntc,{rows}c->bnts", products, chosen)


def additive_energies(query, keys, scale, pairs=None):
    """Scale . tanh(query + key): (B, T, D), (B, S, D), (D,) -> (B, T, S).

    `pairs`, (B, T, S, D), is added to the sum of query and key, if given.
    """
    hidden = ops.expand_dims(query, -2) + ops.expand_dims(keys, -3)
    if pairs is not None:
        hidden = hidden + pairs
    scale = ops.expand_dims(scale, -1)
    return ops.squeeze(project(ops.tanh(hidden), scale), -1)


def masked_softmax(energies, mask=None):
    """Softmax over the last axis, in float32, where the mask is True.

    A row whose mask is all False gives zeros.

    Args:
        energies: (..., S) float.
        mask: bool, broadcast to `energies`, or None.

    Returns:
        weights, (..., S), in the dtype of `energies`.
    """
    energies_f32 = ops.cast(energies, "float32")
    if mask is None:
        return ops.cast(_softmax(energies_f32), energies.dtype)

    # A sum and a product, since `where` on tensors that broadcast is slow on
    # a CPU.
    masked = ops.cast(ops.logical_not(mask), "float32") * _MASKED
    admitted = ops.cast(ops.any(mask, axis=-1, keepdims=True), "float32")
    weights = _softmax(energies_f32 + masked) * admitted
    return ops.cast(weights, energies.dtype)


def _softmax(energies):
    # Keras warns about a softmax over one position, the first of a cache.
    if energies.shape[-1] == 1:
        return ops.ones_like(energies)
    return ops.softmax(energies, axis=-1)


def weighted_sum(weights, values):
    """The context: (B, T, S), (B, S, D) -> (B, T, D)."""
    return ops.matmul(weights, values)


def attend(energies, values, memory_mask=None):
    """Context and weights from energies (B, T, S) and values (B, S, D).

    Args:
        energies: (B, T, S) float.
        values: (B, S, D) float.
        memory_mask: (B, S) bool, True at real positions, or None.

    Returns:
        context (B, T, D), weights (B, T, S).

    Raises:
        ValueError: if the mask has another rank, which would broadcast.
    """
    if memory_mask is not None:
        if len(memory_mask.shape) != 2:
            raise ValueError(
                "memory_mask must be (B, S). "
                f"Received: {tuple(memory_mask.shape)}"
            )
        memory_mask = ops.expand_dims(memory_mask, 1)  # (B, 1, S)
    weights = masked_softmax(energies, memory_mask)
    return weighted_sum(weights, values), weights


def read_memory(
    energies,
    query,
    projected_memory,
    memory_mask=None,
    window=None,
    return_weights=False,
):
    """Attention of K hypotheses of each item to the memory of their item.

    Args:
        energies: function from queries (B, K * T, D) and keys to energies
            (B, K * T, S).
        query: (B * K, T, D) float.
        projected_memory: keys, and values (B, S, M) float.
        memory_mask: (B, S) bool, True at real positions, or None.
        window: int, attend to the last `window` real positions only, or None.
        return_weights: bool, whether to return the weights too.

    Returns:
        context (B * K, T, M), or `(context, weights)` with weights
        (B * K, T, S).
    """
    keys, values = projected_memory
    if window is not None:
        if memory_mask is None:
            memory_mask = ops.ones(ops.shape(values)[:2], dtype="bool")
        memory_mask = last_mask(memory_mask, window)

    folded = fold_hypotheses(query, values)
    context, weights = attend(energies(folded, keys), values, memory_mask)
    context = unfold_hypotheses(context, query)
    if not return_weights:
        return context
    return context, unfold_hypotheses(weights, query)


def fold_hypotheses(query, memory):
    """Moves the K hypotheses of each item to the time axis.

    All K then read the memory of their item without a copy of it:
    (B * K, T, D), (B, ...) -> (B, K * T, D).
    """
    rows, time, depth = ops.shape(query)
    batch = ops.shape(memory)[0]
    at_least_one = ops.maximum if ops.is_tensor(batch) else max
    # One where there are no items: a mask (B, T, S) is as long as T then, too.
    per_item = at_least_one(rows // at_least_one(batch, 1), 1)
    return ops.reshape(query, (batch, per_item * time, depth))


def unfold_hypotheses(folded, query):
    """The inverse: (B, K * T, ...), (B * K, T, D) -> (B * K, T, ...)."""
    rows, time, _ = ops.shape(query)
    return ops.reshape(folded, (rows, time, *ops.shape(folded)[2:]))
