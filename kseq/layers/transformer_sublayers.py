"""The sublayers of a Transformer block: residual connection, FFN."""

import keras
from keras import ops

from kseq.layers.dropout import Dropout
from kseq.layers.layer_normalization import LayerNormalization
from kseq.layers.multi_head_attention import MultiHeadAttention
from kseq.user_error import check_choice, check_integers, check_positive

_CHOICES = {
    "norm": ("pre", "post", "both"),
    "normalization": ("layer", "rms"),
    "activation": ("relu", "gelu", "silu", "swiglu"),
}


def normalization_layer(normalization, dtype, name, epsilon=1e-5):
    """The normalization "layer", or "rms" of Keras, which subtracts no mean.

    Reference:
        RMS: Zhang and Sennrich 2019, arXiv:1910.07467.
    """
    if normalization == "layer":
        return LayerNormalization(epsilon, dtype=dtype, name=name)
    norm = keras.layers.RMSNormalization(
        epsilon=epsilon, dtype=dtype, name=name
    )
    norm.supports_masking = True
    return norm


def final_norm(norm, normalization, dtype, name, epsilon=1e-5):
    """The layer after a stack of blocks: none is needed with `norm="post"`."""
    if norm == "post":
        return keras.layers.Identity(dtype=dtype, name=name)
    return normalization_layer(normalization, dtype, name, epsilon)


def set_sublayers(block, attentions, **arguments):
    """Creates the sublayers of a block of an encoder or a decoder.

    Args:
        block: the layer that gets them, and its arguments as attributes.
        attentions: their names: self-attention, then perhaps attention over a
            memory.
        **arguments: those of `TransformerDecoderBlock`.

    Raises:
        ValueError: if an argument is out of range.
    """
    for name, value in arguments.items():
        setattr(block, name, value)
    block.supports_masking = True
    block.input_spec = keras.layers.InputSpec(ndim=3)
    policy = block.dtype_policy
    options = {  # of self-attention, which is the first
        "window": block.window,
        "rotary": block.rotary,
        "max_relative_position": block.max_relative_position,
    }
    for name in attentions:
        attention = MultiHeadAttention(
            num_heads=block.num_heads,
            key_dim=block.key_dim,
            dropout=block.attention_dropout,
            num_kv_heads=block.num_kv_heads,
            dtype=policy,
            name=name,
            **options,
        )
        setattr(block, name, attention)
        options = {}

    check_integers(ffn_dim=block.ffn_dim)
    # Or a variance of 0 gives nan.
    check_positive(norm_epsilon=block.norm_epsilon)
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(block, name), choices)
    is_gated = block.activation == "swiglu"
    block.ffn_in = keras.layers.Dense(
        2 * block.ffn_dim if is_gated else block.ffn_dim,
        activation=None if is_gated else block.activation,
        dtype=policy,
        name="ffn_in",
    )
    for sublayer in (*attentions, "ffn"):
        names = [f"{sublayer}_norm"]
        if block.norm == "both":
            names.append(f"{sublayer}_output_norm")
        for name in names:
            layer = normalization_layer(
                *(block.normalization, policy, name, block.norm_epsilon)
            )
            setattr(block, name, layer)
    block.residual_dropout = Dropout(
        block.dropout, dtype=policy, name="residual_dropout"
    )


def build_norms(block, sublayer, shape):
    """Builds the normalization of a sublayer, and that of its output."""
    getattr(block, f"{sublayer}_norm").build(shape)
    if block.norm == "both":
        getattr(block, f"{sublayer}_output_norm").build(shape)


def build_feed_forward(block, shape):
    """Builds the position-wise network of a block, (B, T, D)."""
    build_norms(block, "ffn", shape)
    block.ffn_in.build(shape)
    block.ffn_out = keras.layers.Dense(
        shape[-1], dtype=block.dtype_policy, name="ffn_out"
    )
    block.ffn_out.build((*shape[:-1], block.ffn_dim))


def residual(block, sublayer, x, function, training):
    """Adds a sublayer f to x, with dropout and normalization.

        pre:  x + dropout(f(norm(x)))     post:  norm(x + dropout(f(x)))
        both: x + dropout(norm'(f(norm(x))))

    Args:
        block: a Transformer block.
        sublayer: str, the name of the sublayer.
        x: (B, T, D) float.
        function: f, from (B, T, D) to (B, T, D), or to a tuple that begins
            with it.
        training: bool, whether to apply dropout.

    Returns:
        a tuple: the sum, (B, T, D), then the other outputs of the sublayer.
    """
    norm = getattr(block, f"{sublayer}_norm")
    outputs = function(x if block.norm == "post" else norm(x))
    output, *others = outputs if isinstance(outputs, tuple) else (outputs,)
    if block.norm == "both":
        output = getattr(block, f"{sublayer}_output_norm")(output)
    x = x + block.residual_dropout(output, training=training)
    return norm(x) if block.norm == "post" else x, *others


def feed_forward(block, x):
    """The position-wise network of a block: (B, T, D) -> (B, T, D)."""
    # TensorFlow fuses product, bias and activation for a matrix only.
    rows = ops.reshape(x, (-1, x.shape[-1]))  # (B * T, D)
    hidden = block.ffn_in(rows)
    if block.activation == "swiglu":
        gate, hidden = ops.split(hidden, 2, axis=-1)
        hidden = ops.silu(gate) * hidden
    return ops.reshape(block.ffn_out(hidden), ops.shape(x))


def apply_blocks(blocks, x, each):
    """The output of a stack of blocks, and what else each one returns.

    `each` has the keyword arguments of each block.
    """
    others = []
    for block, arguments in zip(blocks, each, strict=True):
        x = block(x, **arguments)
        if isinstance(x, tuple):
            x, *other = x
            others.append(other)
    return x, others
