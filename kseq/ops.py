"""Attention and positions as pure functions of tensors.

Shapes: B batch, T query time, S memory time, D features. Functions of
(B, T, D) accept more leading axes, such as (B, N, T, D).
"""

import math

from keras import ops, tree

from kseq.control_tokens import PAD

_MASKED = -1e30  # exp of it is zero in float32, and it is finite


def padding_mask(ids):
    """True at real tokens. (B, T) int -> (B, T) bool."""
    return ops.not_equal(ids, PAD)


def distances(query_length, memory_length):
    """Distance from each query back to each memory position, (T, S) int32.

    The queries are the last T of the S positions, since a cache holds the
    earlier ones.
    """
    query = ops.arange(query_length, dtype="int32")
    query = query + (memory_length - query_length)
    return query[:, None] - ops.arange(memory_length, dtype="int32")[None, :]


def causal_mask(query_length, memory_length):
    """True where the memory is not later than the query, (T, S) bool."""
    return distances(query_length, memory_length) >= 0


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


def dot_energies(query, keys):
    """Query . key: (B, T, D), (B, S, D) -> (B, T, S)."""
    return ops.matmul(query, ops.swapaxes(keys, -1, -2))


def scaled_dot_energies(query, keys):
    """Query . key / sqrt(D): (B, T, D), (B, S, D) -> (B, T, S).

    The query is scaled, not the energies: it is the smaller of the two.
    """
    return dot_energies(query * (1 / math.sqrt(query.shape[-1])), keys)


def additive_energies(query, keys, scale, pairs=None):
    """Scale . tanh(query + key): (B, T, D), (B, S, D), (D,) -> (B, T, S).

    `pairs`, (B, T, S, D), is added to the sum of query and key, if given.
    """
    hidden = ops.expand_dims(query, -2) + ops.expand_dims(keys, -3)
    if pairs is not None:
        hidden = hidden + pairs
    scale = ops.expand_dims(scale, -1)
    return ops.squeeze(ops.matmul(ops.tanh(hidden), scale), -1)


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
    """
    if memory_mask is not None:
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
    per_item = rows // at_least_one(batch, 1)
    return ops.reshape(query, (batch, per_item * time, depth))


def unfold_hypotheses(folded, query):
    """The inverse: (B, K * T, ...), (B * K, T, D) -> (B * K, T, ...)."""
    rows, time, _ = ops.shape(query)
    return ops.reshape(folded, (rows, time, *ops.shape(folded)[2:]))


def with_empty_row(function, *tensors):
    """The function of a batch with one more row of zeros, without that row.

    TensorFlow convolves and aligns no batch without rows, as a device may get.
    """

    def longer(x):
        return ops.concatenate([x, ops.zeros((1, *ops.shape(x)[1:]), x.dtype)])

    return function(*map(longer, tensors))[:-1]


def scan_time(step, state, inputs, unroll=False):
    """States after each step of a loop over the time axis.

    Args:
        step: function from the state and the inputs of one step, nests of
            (B, ...), to the next state.
        state: the initial state.
        inputs: nest of (B, T, ...).
        unroll: bool, whether to unroll the loop, for T known in advance.

    Returns:
        the states, a nest of (B, T, ...).
    """
    if unroll:
        length = tree.flatten(inputs)[0].shape[1]
        if not isinstance(length, int) or length < 1:
            raise ValueError(
                "A loop is unrolled over a known, positive number of steps. "
                f"Received: unroll=True, {length} steps"
            )
        states = []
        for t in range(length):
            at_step = tree.map_structure(lambda x, t=t: x[:, t], inputs)
            states.append(step(state if t == 0 else states[-1], at_step))
        return tree.map_structure(lambda *x: ops.stack(x, axis=1), *states)

    def advance(state, inputs):
        state = step(state, inputs)
        return state, state

    _, states = ops.scan(advance, state, _swap_batch_and_time(inputs))
    return _swap_batch_and_time(states)


def _swap_batch_and_time(nest):
    return tree.map_structure(lambda x: ops.swapaxes(x, 0, 1), nest)


def lstm_step(gates, cell):
    """One step of an LSTM cell: gates (B, 4U), cell (B, U) -> hidden, cell.

    The gates are given before their activation, in the order input, forget,
    candidate, output. The forget gate has a constant bias of one, so that an
    untrained cell remembers (Jozefowicz et al. 2015).
    """
    admit, keep, candidate, emit = ops.split(gates, 4, axis=-1)
    cell = ops.sigmoid(keep + 1) * cell
    cell = cell + ops.sigmoid(admit) * ops.tanh(candidate)
    return ops.sigmoid(emit) * ops.tanh(cell), cell


def layer_norm(inputs, gamma, beta):
    """Gamma times the normalized inputs plus beta, computed in float32.

    The normalized inputs have mean 0 and variance 1 over the last axis.

    Args:
        inputs: (..., D) float.
        gamma: (D,) float.
        beta: (D,) float.

    Returns:
        (..., D), in the dtype of `inputs`.
    """
    inputs_f32 = ops.cast(inputs, "float32")
    centered = inputs_f32 - ops.mean(inputs_f32, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    normal = centered * ops.rsqrt(variance + 1e-5)
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return ops.cast(normal * gamma + beta, inputs.dtype)


def sinusoids(positions, dim):
    """Sine and cosine of positions, always in float32.

    The first half of the features are sines and the second half cosines, with
    the same wavelengths 2 pi ... 10000 * 2 pi: a permutation of the paper's
    interleaved order, which makes no difference to a linear layer.

    Args:
        positions: (T,) int or float.
        dim: even int, number of features.

    Returns:
        (T, dim) float32.

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and positive. Received: dim={dim}")
    half = ops.arange(dim // 2, dtype="float32")
    rates = ops.exp(half * (-math.log(10000.0) / (dim // 2)))
    angles = ops.cast(positions, "float32")[:, None] * rates[None, :]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
