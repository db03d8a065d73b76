"""One block of a Transformer decoder."""

import functools

import keras

from kseq.layers.attention_scores import check_memory
from kseq.layers.layer_config import config_of
from kseq.layers.output_spec import output_spec
from kseq.layers.transformer_sublayers import (
    build_feed_forward,
    build_norms,
    feed_forward,
    residual,
    set_sublayers,
)


@keras.saving.register_keras_serializable(package="kseq")
class TransformerDecoderBlock(keras.layers.Layer):
    """Causal self-attention, attention over a memory, feed-forward network.

        pre:  x = x + f(norm(x))     post:  x = norm(x + f(x))
        both: x = x + norm'(f(norm(x)))

    where f is each sublayer in turn; the network is that of
    `TransformerEncoderBlock`. A stack of blocks needs one more normalization
    at its end, except with "post". A block that is first called without a
    memory has no attention over a memory: it is a block of a language model.

    Args:
        num_heads: int, number of attention heads.
        key_dim: int, features of a head.
        ffn_dim: int, width of the feed-forward network.
        dropout: float, on the output of each f.
        attention_dropout: float, on the attention weights.
        norm: "pre", "post" or "both", the position of the normalization.
        window: int or None, largest distance that self-attention covers.
        rotary: bool, whether self-attention is rotary.
        max_relative_position: int or None, of self-attention, see
            `MultiHeadAttention`.
        normalization: "layer" or "rms".
        activation: "relu", "gelu", "silu" or "swiglu", of the feed-forward
            network.
        num_kv_heads: int or None, see `MultiHeadAttention`.
        norm_epsilon: float, added to the variance by normalization.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        query: (B, T, D) float. Padding at its end needs no mask, since
            attention is causal.
        memory: (B, S, M) float.
        memory_mask: (B, S) bool, True at real tokens. By default the Keras
            mask of `memory`, if it has one.
        projected_memory: the output of `project_memory(memory)`, instead of
            `memory`. Then `query` may be (B * K, T, D): K hypotheses of each
            item, which read the same memory.
        self_mask: (B, P + T) bool, True at the positions, first those of the
            cache, that self-attention may attend to; or with a cache
            (B, T, P + T), then the only mask. By default all, or without a
            cache those of the Keras mask of `query`.
        cache: dict of "key" and "value", each (B, N, P, H) float, the P
            positions before the query's. P may be 0.
        positions: (B, T) int, see `MultiHeadAttention`.
        distances: (B, T, P + T) float, see `MultiHeadAttention`.
        return_weights: bool, whether to return the attention weights too.
        training: bool, whether to apply dropout.
        mask, query_mask: set by Keras; pass `self_mask` instead.

    Returns:
        output, (B, T, D); then, if `return_weights`, the weights of
        self-attention, (B, N, T, P + T), and those over the memory,
        (B, N, T, S), if the block has one; then the cache with P + T
        positions, if one was given.

    Raises:
        ValueError: if an argument is out of range, if a memory is missing or
            not expected.

    Example:
        >>> query, memory = np.ones((2, 5, 16)), np.ones((2, 7, 16))
        >>> block = TransformerDecoderBlock(num_heads=4, key_dim=4, ffn_dim=32)
        >>> block(query, memory).shape
        TensorShape([2, 5, 16])

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.1. Pre-norm: Xiong
        et al. 2020, arXiv:2002.04745; normalization of the output as well:
        Ding et al. 2021, arXiv:2105.13290. SwiGLU: Shazeer 2020,
        arXiv:2002.05202.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        ffn_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: str = "pre",
        window: int | None = None,
        rotary: bool = False,
        max_relative_position: int | None = None,
        normalization: str = "layer",
        activation: str = "relu",
        num_kv_heads: int | None = None,
        norm_epsilon: float = 1e-5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        set_sublayers(
            self,
            ("self_attention", "cross_attention"),
            num_heads=num_heads,
            key_dim=key_dim,
            ffn_dim=ffn_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            norm=norm,
            window=window,
            rotary=rotary,
            max_relative_position=max_relative_position,
            normalization=normalization,
            activation=activation,
            num_kv_heads=num_kv_heads,
            norm_epsilon=norm_epsilon,
        )

    def build(self, query_shape, memory_shape=None):
        self.self_attention.build(query_shape)
        build_norms(self, "self_attention", query_shape)
        self.reads_memory = memory_shape is not None
        if self.reads_memory:
            self.cross_attention.build(query_shape, memory_shape)
            build_norms(self, "cross_attention", query_shape)
        else:  # nothing to build, as `quantize` of a model asks
            for layer in self._flatten_layers(include_self=False):
                if layer.name.startswith("cross_attention"):
                    layer.built = True
        build_feed_forward(self, query_shape)

    def project_memory(self, memory):
        """Keys and values of a memory: (B, S, M) -> two of (B, N, S, H)."""
        return self.cross_attention.project_memory(memory)

    def check_arguments(
        self, query, memory=None, projected_memory=None, **others
    ):
        """Raises ValueError unless those of `call` fit the layer."""
        if memory is not None:
            check_memory(memory, query)
        has_memory = memory is not None or projected_memory is not None
        if has_memory != self.reads_memory:
            built = "with" if self.reads_memory else "without"
            raise ValueError(
                f"{self.name} was built {built} a memory. "
                f"Received: {'a memory' if has_memory else 'none'}"
            )

    def call(
        self,
        query,
        memory=None,
        memory_mask=None,
        projected_memory=None,
        self_mask=None,
        cache=None,
        positions=None,
        distances=None,
        return_weights: bool = False,
        training: bool | None = None,
        mask=None,
        query_mask=None,
    ):
        self.check_arguments(query, memory, projected_memory)
        if self_mask is None and cache is None:
            self_mask = query_mask if mask is None else mask
        attend = functools.partial(
            self.self_attention,
            memory_mask=self_mask,
            causal=True,
            cache=cache,
            positions=positions,
            distances=distances,
            return_weights=return_weights,
            training=training,
        )
        attend_to_memory = functools.partial(
            self.cross_attention,
            memory=memory,
            memory_mask=memory_mask,
            projected_memory=projected_memory,
            return_weights=return_weights,
            training=training,
        )
        feed = functools.partial(feed_forward, self)

        x, *outputs = residual(self, "self_attention", query, attend, training)
        caches = [outputs.pop()] if cache is not None else []
        if self.reads_memory:
            x, *weights = residual(
                self, "cross_attention", x, attend_to_memory, training
            )
            outputs += weights
        (x,) = residual(self, "ffn", x, feed, training)
        outputs = [x, *outputs, *caches]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute_output_shape(self, query_shape, memory_shape=None):
        return query_shape

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return config_of(self, TransformerDecoderBlock)
