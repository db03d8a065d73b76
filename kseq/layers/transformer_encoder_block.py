"""One block of a Transformer encoder."""

import functools

import keras

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
class TransformerEncoderBlock(keras.layers.Layer):
    """Self-attention, then a position-wise feed-forward network.

        pre:  x = x + f(norm(x))     post:  x = norm(x + f(x))
        both: x = x + norm'(f(norm(x)))

    where f is the attention, then the network W_2 relu(W_1 x + b_1) + b_2,
    with gelu for relu, or with silu(W_1 x + b_1) * (W_3 x + b_3) for "swiglu".
    A stack of blocks needs one more normalization at its end, except with
    "post".

    Args:
        num_heads: int, number of attention heads.
        key_dim: int, features of a head.
        ffn_dim: int, width of the feed-forward network.
        dropout: float, on the output of each f.
        attention_dropout: float, on the attention weights.
        norm: "pre", "post" or "both", the position of the normalization.
        window: int or None, largest distance that attention covers.
        rotary: bool, whether the attention is rotary.
        max_relative_position: int or None, see `MultiHeadAttention`.
        normalization: "layer" or "rms".
        activation: "relu", "gelu", "silu" or "swiglu", of the feed-forward
            network.
        num_kv_heads: int or None, see `MultiHeadAttention`.
        norm_epsilon: float, added to the variance by normalization.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, T, D) float.
        inputs_mask: (B, T) bool, True at real tokens. By default the Keras
            mask of `inputs`, if it has one.
        return_weights: bool, whether to return the attention weights too.
        training: bool, whether to apply dropout.
        mask: set by Keras; pass `inputs_mask` instead.

    Returns:
        output, (B, T, D), or `(output, weights)` with weights (B, N, T, T).

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> inputs = np.ones((2, 5, 16))
        >>> block = TransformerEncoderBlock(num_heads=4, key_dim=4, ffn_dim=32)
        >>> block(inputs, inputs_mask=np.ones((2, 5), bool)).shape
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
            ("attention",),
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

    def build(self, input_shape):
        self.attention.build(input_shape)
        build_norms(self, "attention", input_shape)
        build_feed_forward(self, input_shape)

    def call(
        self,
        inputs,
        inputs_mask=None,
        return_weights: bool = False,
        training: bool | None = None,
        mask=None,
    ):
        inputs_mask = mask if inputs_mask is None else inputs_mask
        attend = functools.partial(
            self.attention,
            memory_mask=inputs_mask,
            return_weights=return_weights,
            training=training,
        )
        feed = functools.partial(feed_forward, self)
        x, *weights = residual(self, "attention", inputs, attend, training)
        (x,) = residual(self, "ffn", x, feed, training)
        return (x, *weights) if return_weights else x

    def compute_output_shape(self, input_shape):
        return input_shape

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return config_of(self, TransformerEncoderBlock)
