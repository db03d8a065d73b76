"""One block of a Transformer decoder."""

import keras
from keras import ops

from kseq.layers.dropout import Dropout
from kseq.layers.layer_normalization import LayerNormalization
from kseq.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable(package="kseq")
class TransformerDecoderBlock(keras.layers.Layer):
    """Causal self-attention, attention over a memory, feed-forward network.

        pre:  x = x + f(norm(x))     post:  x = norm(x + f(x))

    for each f in turn; the network is `ffn_dim` wide inside. A stack of
    pre-norm blocks wants one more normalization after the last of them. A
    block whose first call brings no memory has no attention over one: it is
    a block of a language model.

    Args:
        num_heads: int, number of attention heads.
        key_dim: int, features of a head.
        ffn_dim: int, width of the feed-forward network.
        dropout: float, share dropped of what each f adds to x.
        attention_dropout: float, share of the attention weights dropped.
        activation: name or function, inside the feed-forward network.
        norm: "pre" or "post", where the layer normalization stands.
        window: int or None, how far back self-attention may look.

    Call arguments:
        query: (B, T, D) float.
        memory: (B, S, M) float.
        query_mask: (B, T) bool, True at real tokens; with a cache (B, P + T).
        memory_mask: (B, S) bool, True at real tokens.
        projected_memory: what `project_memory(memory)` gave, instead of
            `memory`. There may then be K queries to an item of the memory,
            (B * K, T, D), the K of an item in a row; no memory is copied.
        cache: dict of "key" and "value", each (B, N, P, H) float, the P
            positions before the query's. P may be 0.
        return_weights: bool, whether to return the weights over the memory.
        training: bool, whether to drop.

    Returns:
        output, (B, T, D); then weights, (B, N, T, S), if `return_weights`;
        then the cache grown to P + T, if one was given.

    Raises:
        ValueError: for arguments out of range, for a memory that is missing
            or not expected.

    Example:
        >>> query, memory = np.ones((2, 5, 16)), np.ones((2, 7, 16))
        >>> block = TransformerDecoderBlock(num_heads=4, key_dim=4, ffn_dim=32)
        >>> block(query, memory).shape
        TensorShape([2, 5, 16])

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.1. Pre-norm: Xiong
        et al. 2020, arXiv:2002.04745.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        ffn_dim,
        dropout=0.0,
        attention_dropout=0.0,
        activation="relu",
        norm="pre",
        window=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if ffn_dim < 1:
            raise ValueError(
                f"ffn_dim must be positive. Received: ffn_dim={ffn_dim}"
            )
        if norm not in ("pre", "post"):
            raise ValueError(
                f'norm must be "pre" or "post". Received: norm={norm!r}'
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation = keras.activations.get(activation)
        self.norm = norm
        self.window = window

        self.self_attention = MultiHeadAttention(
            num_heads=num_heads,
            key_dim=key_dim,
            dropout=attention_dropout,
            window=window,
            dtype=self.dtype_policy,
            name="self_attention",
        )
        self.cross_attention = MultiHeadAttention(
            num_heads=num_heads,
            key_dim=key_dim,
            dropout=attention_dropout,
            dtype=self.dtype_policy,
            name="cross_attention",
        )
        self.ffn_in = keras.layers.Dense(
            ffn_dim,
            activation=self.activation,
            dtype=self.dtype_policy,
            name="ffn_in",
        )
        self.self_attention_norm = LayerNormalization(
            dtype=self.dtype_policy, name="self_attention_norm"
        )
        self.cross_attention_norm = LayerNormalization(
            dtype=self.dtype_policy, name="cross_attention_norm"
        )
        self.ffn_norm = LayerNormalization(
            dtype=self.dtype_policy, name="ffn_norm"
        )
        self.residual_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="residual_dropout"
        )

    def build(self, query_shape, memory_shape=None):
        self.self_attention.build(query_shape)
        self.self_attention_norm.build(query_shape)
        self.reads_memory = memory_shape is not None
        if self.reads_memory:
            self.cross_attention.build(query_shape, memory_shape)
            self.cross_attention_norm.build(query_shape)

        self.ffn_norm.build(query_shape)
        self.ffn_in.build(query_shape)
        self.ffn_out = keras.layers.Dense(
            query_shape[-1], dtype=self.dtype_policy, name="ffn_out"
        )
        self.ffn_out.build((*query_shape[:-1], self.ffn_dim))

    def project_memory(self, memory):
        """Keys and values of a memory: (B, S, M) -> two of (B, N, S, H)."""
        return self.cross_attention.project_memory(memory)

    def call(
        self,
        query,
        memory=None,
        query_mask=None,
        memory_mask=None,
        projected_memory=None,
        cache=None,
        return_weights=False,
        training=None,
    ):
        has_memory = memory is not None or projected_memory is not None
        if not self.reads_memory and (has_memory or return_weights):
            raise ValueError(
                f"{self.name} was built without a memory. "
                f"Received: memory={has_memory}, "
                f"return_weights={return_weights}"
            )

        attended = self.self_attention(
            self._before(self.self_attention_norm, query),
            memory_mask=query_mask,
            causal=True,
            cache=cache,
            training=training,
        )
        if cache is not None:
            attended, cache = attended
        x = query + self.residual_dropout(attended, training=training)
        x = self._after(self.self_attention_norm, x)

        if self.reads_memory:
            attended = self.cross_attention(
                self._before(self.cross_attention_norm, x),
                memory,
                memory_mask=memory_mask,
                projected_memory=projected_memory,
                return_weights=return_weights,
                training=training,
            )
            if return_weights:
                attended, weights = attended
            x = x + self.residual_dropout(attended, training=training)
            x = self._after(self.cross_attention_norm, x)

        hidden = self._ffn(self._before(self.ffn_norm, x))
        x = x + self.residual_dropout(hidden, training=training)

        outputs = [self._after(self.ffn_norm, x)]
        if return_weights:
            outputs.append(weights)
        if cache is not None:
            outputs.append(cache)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute_output_shape(self, query_shape, memory_shape=None):
        return query_shape

    def compute_output_spec(self, *args, **kwargs):
        # How many outputs there are depends on the arguments: trace `call`.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": keras.activations.serialize(self.activation),
            "norm": self.norm,
            "window": self.window,
        }

    def _ffn(self, x):
        # Of a matrix, TensorFlow fuses product, bias and activation.
        rows = ops.reshape(x, (-1, x.shape[-1]))  # (B * T, D)
        return ops.reshape(self.ffn_out(self.ffn_in(rows)), ops.shape(x))

    def _before(self, norm, x):
        return norm(x) if self.norm == "pre" else x

    def _after(self, norm, x):
        return norm(x) if self.norm == "post" else x
