"""The layer of a Transformer that adds positions."""

from kseq.layers import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from kseq.user_error import ArgumentError


def position_layer(positions, max_length, dtype, name):
    """A layer that adds positions to embeddings.

    Args:
        positions: "sinusoidal" or "learned".
        max_length: int, maximum number of learned ones.
        dtype: dtype policy.
        name: str, of the layer.

    Raises:
        ArgumentError: if `positions` is neither.
    """
    if positions == "learned":
        return LearnedPositionalEmbedding(max_length, dtype=dtype, name=name)
    if positions == "sinusoidal":
        return SinusoidalPositionalEncoding(dtype=dtype, name=name)
    raise ArgumentError(
        'positions must be "sinusoidal" or "learned". '
        f"Received: positions={positions!r}"
    )
