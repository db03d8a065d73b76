"""Multi-head attention, over a memory or over its own inputs."""

import functools

import keras
from keras import ops

from kseq.layers.dropout import Dropout
from kseq.ops import (
    causal_mask,
    fold_hypotheses,
    masked_softmax,
    scaled_dot_energies,
    unfold_hypotheses,
    weighted_sum,
    window_mask,
)


@keras.saving.register_keras_serializable(package="kseq")
class MultiHeadAttention(keras.layers.Layer):
    """Scaled dot-product attention in several subspaces at once.

        head_i = softmax(Q_i K_i^T / sqrt(key_dim)) V_i
        output = [head_1; ...; head_N] W_o + b_o

    A layer whose first call brings no memory attends to its own inputs, with
    one fused projection for query, key and value. Any other attends to a
    memory, with one projection for the query and one for key and value.

    Args:
        num_heads: int, number of heads, N.
        key_dim: int, features of a head, H.
        output_dim: int, features of the output; those of the query if None.
        dropout: float, share of the attention weights dropped in training.
        use_bias: bool, whether the projections have biases.
        window: int or None. Self-attention only: how many positions away a
            query may look, in either direction.

    Call arguments:
        query: (B, T, D) float.
        memory: (B, S, M) float, what is attended to.
        memory_mask: bool, True where attention may go: (B, S) over the keys,
            or (B, T, S). In self-attention the keys are the query's own
            positions, behind those of the cache.
        causal: bool, whether a query is kept from later positions.
        projected_memory: what `project_memory(memory)` gave, instead of
            `memory`. There may then be K queries to an item of the memory,
            (B * K, T, D), the K of an item in a row; no memory is copied.
        cache: self-attention only: a dict of "key" and "value", each
            (B, N, P, H) float, the P positions before the query's.
        return_weights: bool, whether to return the attention weights too,
            as they were before any was dropped.
        training: bool, whether to drop weights.

    Returns:
        output, (B, T, output_dim); then weights, (B, N, T, S), if
        `return_weights`; then the cache grown to P + T, if one was given.
        A query with nothing to attend to has weights and heads of zero.

    Raises:
        ValueError: for arguments out of range, for a memory given to
            self-attention or missing elsewhere, for `causal`, a cache or a
            window in attention over a memory.

    Example:
        >>> query, memory = np.ones((2, 5, 16)), np.ones((2, 7, 24))
        >>> attention = MultiHeadAttention(num_heads=4, key_dim=8)
        >>> output, weights = attention(query, memory, return_weights=True)
        >>> output.shape, weights.shape
        (TensorShape([2, 5, 16]), TensorShape([2, 4, 5, 7]))

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.2; the window is the
        restricted self-attention of section 4.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        output_dim=None,
        dropout=0.0,
        use_bias=True,
        window=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or key_dim < 1:
            raise ValueError(
                "num_heads and key_dim must be positive. "
                f"Received: num_heads={num_heads}, key_dim={key_dim}"
            )
        if output_dim is not None and output_dim < 1:
            raise ValueError(
                "output_dim must be positive or None. "
                f"Received: output_dim={output_dim}"
            )
        if window is not None and window < 0:
            raise ValueError(
                f"window must not be negative. Received: window={window}"
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.output_dim = output_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.window = window

        self.weights_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="weights_dropout"
        )

    def build(self, query_shape, memory_shape=None):
        width = self.num_heads * self.key_dim
        self.attends_to_itself = memory_shape is None
        if self.attends_to_itself:
            self.query_key_value = self._dense(3 * width, "query_key_value")
            self.query_key_value.build(query_shape)
        else:
            if self.window is not None:
                raise ValueError(
                    "Only self-attention takes a window. "
                    f"Received: window={self.window} and a memory"
                )
            self.query = self._dense(width, "query")
            self.query.build(query_shape)
            self.key_value = self._dense(2 * width, "key_value")
            self.key_value.build(memory_shape)

        output_dim = self.output_dim or query_shape[-1]
        self.projection = self._dense(output_dim, "projection")
        self.projection.build((*query_shape[:-1], width))

    def project_memory(self, memory):
        """Keys and values of a memory: (B, S, M) -> two of (B, N, S, H)."""
        return self._project(self.key_value, memory, parts=2)

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        causal=False,
        projected_memory=None,
        cache=None,
        return_weights=False,
        training=None,
    ):
        has_memory = memory is not None or projected_memory is not None
        if self.attends_to_itself and has_memory:
            raise ValueError(
                f"{self.name} was built to attend to its own inputs. "
                "Received: a memory"
            )
        if not self.attends_to_itself and not has_memory:
            raise ValueError(
                f"{self.name} was built to attend to a memory. Received: none"
            )
        if has_memory and (causal or cache is not None):
            raise ValueError(
                "Only self-attention can be causal or take a cache. "
                f"Received: causal={causal}, cache={cache is not None}"
            )

        if self.attends_to_itself:
            queries, keys, values = self._project(
                self.query_key_value, query, parts=3
            )
        else:
            keys, values = projected_memory or self.project_memory(memory)
            folded = fold_hypotheses(query, keys)  # (B, K * T, D)
            (queries,) = self._project(self.query, folded, parts=1)
        if cache is not None:
            keys = ops.concatenate([cache["key"], keys], axis=2)
            values = ops.concatenate([cache["value"], values], axis=2)
            cache = {"key": keys, "value": values}

        energies = scaled_dot_energies(queries, keys)  # (B, N, K * T, S)
        mask = self._mask(energies, memory_mask, causal)
        weights = masked_softmax(energies, mask)
        dropped = self.weights_dropout(weights, training=training)
        context = weighted_sum(dropped, values)  # (B, N, K * T, H)

        outputs = [self._join_heads(context, query)]
        if return_weights:
            weights = unfold_hypotheses(ops.swapaxes(weights, 1, 2), query)
            outputs.append(ops.swapaxes(weights, 1, 2))  # (B * K, N, T, S)
        if cache is not None:
            outputs.append(cache)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute_output_shape(self, query_shape, memory_shape=None):
        return (*query_shape[:-1], self.output_dim or query_shape[-1])

    def compute_output_spec(self, *args, **kwargs):
        # How many outputs there are depends on the arguments: trace `call`.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "output_dim": self.output_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "window": self.window,
        }

    def _dense(self, units, name):
        return keras.layers.Dense(
            units, use_bias=self.use_bias, dtype=self.dtype_policy, name=name
        )

    def _project(self, projection, inputs, parts):
        """(B, T, D) -> as many tensors (B, N, T, H) as there are parts."""
        batch, time, depth = ops.shape(inputs)
        # Of a matrix, TensorFlow fuses the product and the bias.
        rows = projection(ops.reshape(inputs, (-1, depth)))  # (B * T, ...)
        shape = (batch, time, parts, self.num_heads, self.key_dim)
        heads = ops.transpose(ops.reshape(rows, shape), (2, 0, 3, 1, 4))
        return tuple(ops.unstack(heads))

    def _join_heads(self, context, query):
        """(B, N, K * T, H) -> (B * K, T, output_dim)."""
        width = self.num_heads * self.key_dim
        rows = ops.reshape(ops.swapaxes(context, 1, 2), (-1, width))
        batch, time, _ = ops.shape(query)
        shape = (batch, time, self.projection.units)
        return ops.reshape(self.projection(rows), shape)

    def _mask(self, energies, memory_mask, causal):
        """Where attention may go, of a shape that broadcasts to energies."""
        masks = []
        time, memory_time = ops.shape(energies)[-2:]
        if causal:
            masks.append(causal_mask(time, memory_time))
        if self.window is not None:
            masks.append(window_mask(time, memory_time, self.window))
        if memory_mask is not None:
            if len(memory_mask.shape) == 2:
                memory_mask = ops.expand_dims(memory_mask, 1)
            masks.append(ops.expand_dims(memory_mask, 1))  # (B, 1, 1 or T, S)
        return functools.reduce(ops.logical_and, masks) if masks else None
