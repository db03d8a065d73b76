"""The sublayers of a Transformer block: residual connection, FFN."""

from keras import ops


def residual(block, norm, x, sublayer, training):
    """Adds a sublayer f to x, with dropout and layer normalization.

        pre:  x + dropout(f(norm(x)))     post:  norm(x + dropout(f(x)))

    Args:
        block: a Transformer block.
        norm: its layer normalization for this sublayer.
        x: (B, T, D) float.
        sublayer: function from (B, T, D) to (B, T, D), or to a tuple that
            begins with it.
        training: bool, whether to apply dropout.

    Returns:
        a tuple: the sum, (B, T, D), then the other outputs of the sublayer.
    """
    outputs = sublayer(norm(x) if block.norm == "pre" else x)
    output, *others = outputs if isinstance(outputs, tuple) else (outputs,)
    x = x + block.residual_dropout(output, training=training)
    return norm(x) if block.norm == "post" else x, *others


def feed_forward(block, x):
    """The position-wise network of a block: (B, T, D) -> (B, T, D)."""
    # TensorFlow fuses product, bias and activation for a matrix only.
    rows = ops.reshape(x, (-1, x.shape[-1]))  # (B * T, D)
    return ops.reshape(block.ffn_out(block.ffn_in(rows)), ops.shape(x))


def apply_blocks(blocks, x, each):
    """Calls a stack of blocks.

    Args:
        blocks: list of layers.
        x: (B, T, D) float.
        each: list of the keyword arguments of each block.

    Returns:
        x after the last block, and a list of what else each one returns.
    """
    others = []
    for block, arguments in zip(blocks, each, strict=True):
        x = block(x, **arguments)
        if isinstance(x, tuple):
            x, *other = x
            others.append(other)
    return x, others
