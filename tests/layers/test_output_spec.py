import functools

import keras
import pytest

from kseq.layers import (
    GatedConvolution,
    MultiHeadAttention,
    TransformerDecoderBlock,
)

BLOCK = {"num_heads": 2, "key_dim": 4, "ffn_dim": 16}


@pytest.fixture
def traced(monkeypatch):
    """The layers whose `call` has run."""
    layers = []
    for kind in (GatedConvolution, TransformerDecoderBlock):
        monkeypatch.setattr(kind, "call", _noted(kind.call, layers))
    return layers


def _noted(call, layers):
    @functools.wraps(call)
    def noted(layer, *args, **kwargs):
        layers.append(layer)
        return call(layer, *args, **kwargs)

    return noted


def test_one_output_is_not_traced(traced):
    query, memory = keras.Input((None, 8)), keras.Input((7, 6))
    block = TransformerDecoderBlock(**BLOCK, dtype="mixed_float16")
    outputs = block(query, memory, return_weights=False, cache=None)
    assert (outputs.shape, outputs.dtype) == ((None, None, 8), "float16")
    assert traced == []


def test_more_outputs_are(traced):
    query, memory = keras.Input((5, 8)), keras.Input((7, 6))
    block = TransformerDecoderBlock(**BLOCK)
    shapes = [each.shape for each in block(query, memory, return_weights=True)]
    assert shapes == [(None, 5, 8), (None, 2, 5, 5), (None, 2, 5, 7)]
    convolution = GatedConvolution(6, kernel_size=3, causal=True)
    mask, before = keras.Input((5,), dtype="bool"), keras.Input((2, 8))
    outputs = convolution(query, mask, before)
    assert [each.shape for each in outputs] == [(None, 5, 6), (None, 2, 8)]
    assert traced == [block, convolution]


def test_arguments_are_checked_all_the_same(traced):
    query, memory = keras.Input((5, 8)), keras.Input((7, 6))
    with pytest.raises(ValueError, match="causal=True"):
        MultiHeadAttention(2, 4)(query, memory, causal=True)
    for kind, first, then in (
        (MultiHeadAttention(2, 4), [query], [query, memory]),
        (MultiHeadAttention(2, 4), [query, memory], [query]),
        (TransformerDecoderBlock(**BLOCK), [query], [query, memory]),
        (TransformerDecoderBlock(**BLOCK), [query, memory], [query]),
    ):
        kind(*first)
        with pytest.raises(ValueError, match="was built"):
            kind(*then)
        with pytest.raises(ValueError, match="expected ndim=3"):
            type(kind).from_config(kind.get_config())(keras.Input((8,)))
    assert traced == []
