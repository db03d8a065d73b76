"""One block of a Transformer encoder."""

import keras
from keras import ops

from kseq.layers.dropout import Dropout
from kseq.layers.layer_normalization import LayerNormalization
from kseq.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable(package="kseq")
class TransformerEncoderBlock(keras.layers.Layer):
    """Self-attention, then a position-wise feed-forward network.

        pre:  x = x + f(norm(x))     post:  x = norm(x + f(x))

    for f the attention and then the network, `ffn_dim` wide inside. A stack
    of pre-norm blocks wants one more normalization after the last of them.

    Args:
        num_heads: int, number of attention heads.
        key_dim: int, features of a head.
        ffn_dim: int, width of the feed-forward network.
        dropout: float, share dropped of what each f adds to x.
        attention_dropout: float, share of the attention weights dropped.
        activation: name or function, inside the feed-forward network.
        norm: "pre" or "post", where the layer normalization stands.
        window: int or None, how many positions away attention may look.

    Call arguments:
        inputs: (B, T, D) float.
        inputs_mask: (B, T) bool, True at real tokens.
        training: bool, whether to drop.

    Returns:
        (B, T, D).

    Raises:
        ValueError: for arguments out of range.

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

        self.attention = MultiHeadAttention(
            num_heads=num_heads,
            key_dim=key_dim,
            dropout=attention_dropout,
            window=window,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.ffn_in = keras.layers.Dense(
            ffn_dim,
            activation=self.activation,
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

    def call(self, inputs, inputs_mask=None, training=None):
        attended = self.attention(
            self._before(self.attention_norm, inputs),
            memory_mask=inputs_mask,
            training=training,
        )
        x = inputs + self.residual_dropout(attended, training=training)
        x = self._after(self.attention_norm, x)

        hidden = self._ffn(self._before(self.ffn_norm, x))
        x = x + self.residual_dropout(hidden, training=training)
        return self._after(self.ffn_norm, x)

    def compute_output_shape(self, input_shape):
        return input_shape

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
