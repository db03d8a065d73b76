"""One block of a Transformer encoder."""

import functools

import keras

from kseq.layers.dropout import Dropout
from kseq.layers.layer_normalization import LayerNormalization
from kseq.layers.multi_head_attention import MultiHeadAttention
from kseq.layers.transformer_sublayers import feed_forward, residual
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class TransformerEncoderBlock(keras.layers.Layer):
    """Self-attention, then a position-wise feed-forward network.

        pre:  x = x + f(norm(x))     post:  x = norm(x + f(x))

    where f is the attention, then the network W_2 relu(W_1 x + b_1) + b_2. A
    stack of pre-norm blocks needs one more normalization at its end.

    Args:
        num_heads: int, number of attention heads.
        key_dim: int, features of a head.
        ffn_dim: int, width of the feed-forward network.
        dropout: float, on the output of each f.
        attention_dropout: float, on the attention weights.
        norm: "pre" or "post", the position of the layer normalization.
        window: int or None, largest distance that attention covers.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, T, D) float.
        inputs_mask: (B, T) bool, True at real tokens. By default the Keras
            mask of `inputs`, if it has one.
        return_weights: bool, whether to return the attention weights too.
        training: bool, whether to apply dropout.

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
        et al. 2020, arXiv:2002.04745.
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
        **kwargs,
    ):
        check_integers(ffn_dim=ffn_dim)
        if norm not in ("pre", "post"):
            raise ValueError(
                f'norm must be "pre" or "post". Received: norm={norm!r}'
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.ffn_dim = ffn_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.norm = norm
        self.window = window

        self.attention: keras.layers.Layer = MultiHeadAttention(
            num_heads=num_heads,
            key_dim=key_dim,
            dropout=attention_dropout,
            window=window,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.ffn_in = keras.layers.Dense(
            ffn_dim,
            activation="relu",
            dtype=self.dtype_policy,
            name="ffn_in",
        )
        self.attention_norm = LayerNormalization(
            dtype=self.dtype_policy, name="attention_norm"
        )
        self.ffn_norm = LayerNormalization(
            dtype=self.dtype_policy, name="ffn_norm"
        )
        self.residual_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="residual_dropout"
        )

    def build(self, input_shape):
        self.attention.build(input_shape)
        self.attention_norm.build(input_shape)
        self.ffn_norm.build(input_shape)
        self.ffn_in.build(input_shape)
        self.ffn_out = keras.layers.Dense(
            input_shape[-1], dtype=self.dtype_policy, name="ffn_out"
        )
        self.ffn_out.build((*input_shape[:-1], self.ffn_dim))

    def call(
        self,
        inputs,
        inputs_mask=None,
        return_weights: bool = False,
        training: bool | None = None,
    ):
        attend = functools.partial(
            self.attention,
            memory_mask=inputs_mask,
            return_weights=return_weights,
            training=training,
        )
        feed = functools.partial(feed_forward, self)
        x, *weights = residual(
            self, self.attention_norm, inputs, attend, training
        )
        (x,) = residual(self, self.ffn_norm, x, feed, training)
        return (x, *weights) if return_weights else x

    def compute_output_shape(self, input_shape):
        return input_shape

    # The arguments decide how many outputs there are: trace `call`.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "ffn_dim": self.ffn_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "norm": self.norm,
            "window": self.window,
        }
