"""A tensor without a time axis is refused, by its name where it has one."""

import keras
import numpy as np
import pytest

from kseq import layers
from tests.layers.arrays import normal
from tests.layers.test_keras_masks import OVER_MEMORY

SEQUENCES = {
    "pooling": lambda: layers.AttentionPooling(5),
    "sinusoids": layers.SinusoidalPositionalEncoding,
    "learned positions": lambda: layers.LearnedPositionalEmbedding(9),
    "convolution": lambda: layers.GatedConvolution(6, 3),
}
SOURCES = {
    "grid": lambda: layers.GridEncoder(6, num_cells=7),
    "pyramid": lambda: layers.PyramidalEncoder(6),
    "augment": layers.SpecAugment,
    "turns": lambda: layers.HierarchicalEncoder(6),
}
MASKS = [(4, 1), (4, 6), (2, 7), (7,), (4, 7, 1), (4, 1, 1, 7)]
IN_A_GRAPH = [False, True]


def given(is_symbolic, *shape):
    return keras.Input(shape[1:]) if is_symbolic else normal(*shape)


@pytest.mark.parametrize("is_symbolic", IN_A_GRAPH)
@pytest.mark.parametrize("name", OVER_MEMORY)
def test_a_vector_is_no_memory(name, is_symbolic):
    """Its rows would be read as the positions of one memory."""
    query = given(is_symbolic, 2, 5, 8)
    layer = OVER_MEMORY[name]()
    with pytest.raises(ValueError, match=r"memory must be \(B, S, M\)\. Rec"):
        layer(query, given(is_symbolic, 2, 8))
    layer(query, given(is_symbolic, 2, 7, 8))
    with pytest.raises(ValueError, match=r"memory must be \(B, S, M\)\. Rec"):
        layer(query, given(is_symbolic, 2, 8))


@pytest.mark.parametrize("name", OVER_MEMORY)
def test_a_vector_is_no_query(name):
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
        OVER_MEMORY[name]()(normal(2, 8), normal(2, 7, 8))


@pytest.mark.parametrize("name", OVER_MEMORY)
def test_a_memory_of_fewer_items_is_refused(name):
    """It would be that of several hypotheses of each item."""
    layer = OVER_MEMORY[name]()
    layer(normal(4, 5, 8), normal(4, 7, 8))
    with pytest.raises(ValueError, match="must have the same batch"):
        layer(normal(4, 5, 8), normal(2, 7, 8))


@pytest.mark.parametrize("name", OVER_MEMORY)
@pytest.mark.parametrize("shape", MASKS)
def test_a_mask_of_other_positions_is_refused(name, shape):
    layer = OVER_MEMORY[name]()
    query, memory = normal(4, 5, 8), normal(4, 7, 8)
    with pytest.raises(ValueError, match="memory_mask must have a value for"):
        layer(query, memory, memory_mask=np.ones(shape, bool))
    layer(query, memory, memory_mask=np.ones((4, 7), bool))


@pytest.mark.parametrize("shape", [(4, 1), (4, 3, 5)])
def test_a_mask_of_other_positions_in_self_attention(shape):
    layer = layers.MultiHeadAttention(2, 4)
    with pytest.raises(ValueError, match="memory_mask must have a value for"):
        layer(normal(4, 5, 8), memory_mask=np.ones(shape, bool))


@pytest.mark.parametrize("name", OVER_MEMORY)
def test_a_list_is_no_mask(name):
    mask = np.ones((4, 7), bool).tolist()
    with pytest.raises(ValueError, match=r"each position.* Received: list"):
        OVER_MEMORY[name]()(normal(4, 5, 8), normal(4, 7, 8), memory_mask=mask)


@pytest.mark.parametrize("name", ["pooling", "convolution", "recurrent"])
@pytest.mark.parametrize("shape", MASKS)
def test_a_mask_of_other_inputs_is_refused(name, shape):
    """One of (B, 1) would broadcast, and mask nothing."""
    makers = {**SEQUENCES, "recurrent": lambda: layers.RecurrentPooling(3, 5)}
    layer, inputs = makers[name](), normal(4, 7, 8)
    with pytest.raises(ValueError, match="inputs_mask must have a value for"):
        layer(inputs, inputs_mask=np.ones(shape, bool))
    layer(inputs, inputs_mask=np.ones((4, 7), bool))


@pytest.mark.parametrize("name", SOURCES)
def test_a_mask_of_another_source_is_refused(name):
    turns = (3,) if name == "turns" else ()
    source, mask = normal(4, *turns, 7, 8), np.ones((4, *turns, 7), bool)
    for wrong in (None, mask[:2], mask[..., :1], mask[..., None]):
        with pytest.raises(ValueError, match="source_mask must have a value"):
            SOURCES[name]()(source, source_mask=wrong)
    SOURCES[name]()(source, mask)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_vector_is_no_sequence(name):
    with pytest.raises(ValueError, match=r"expected (min_)?ndim=3, found"):
        SEQUENCES[name]()(normal(2, 8))


@pytest.mark.parametrize("is_symbolic", IN_A_GRAPH)
@pytest.mark.parametrize("name", ["decoder", "convolution"])
def test_other_features_than_before(name, is_symbolic):
    layer = {**OVER_MEMORY, **SEQUENCES}[name]()
    memory = [normal(2, 7, 8)] if name == "decoder" else []
    layer(normal(2, 5, 8), *memory)
    with pytest.raises(ValueError, match="expected axis -1 of input shape to"):
        layer(given(is_symbolic, 2, 5, 6), *memory)
