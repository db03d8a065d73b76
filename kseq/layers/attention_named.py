"""The attention of a recurrent decoder, by the name of an option."""

import keras

from kseq.layers.attention_scores import (
    BahdanauAttention,
    LocationAttention,
    LuongAttention,
)
from kseq.layers.local_attention import LocalAttention
from kseq.layers.location_aware_attention import LocationAwareAttention


def attention_named(
    name: str,
    units: int,
    *,
    last_states: int = 0,
    local: str = "none",
    window: int = 10,
    max_length: int = 0,
) -> keras.layers.Layer | None:
    """The layer that the option `--attention` names.

    Args:
        name: "none", "additive", "location_aware", "location", or a score of
            `LuongAttention`.
        units: width of the hidden layer, where a score has one.
        last_states: real positions that are attended to, from the last; 0 for
            all. "location" and local attention do not read it.
        local: "none", or the alignment of `LocalAttention`.
        window: of `LocalAttention`.
        max_length: of `LocationAttention`.

    Returns:
        A layer with the name "attention", or None for "none".

    Raises:
        ValueError: if there is no such score, or the layer refuses a value.

    Example:
        >>> type(attention_named("additive", 32)).__name__
        'BahdanauAttention'
    """
    if name == "none":
        return None
    if name == "location":
        return LocationAttention(max_length, name="attention")
    hidden = units if name == "concat" else None
    if local != "none":
        return LocalAttention(name, hidden, window, local, name="attention")
    reach = last_states or None
    if name == "additive":
        return BahdanauAttention(units, reach, name="attention")
    if name == "location_aware":
        return LocationAwareAttention(units, window=reach, name="attention")
    return LuongAttention(name, hidden, reach, name="attention")
