"""`model.quantize` of Keras, which replaces kernels by integers and scales."""

import keras
import numpy as np
import pytest

from kseq.control_tokens import END, START
from kseq.layers import (
    LocationAttention,
    LocationAwareAttention,
    TransformerDecoderBlock,
)
from kseq.models import LSTMLM, TransformerLM
from tests.layers.arrays import normal, numpy_of
from tests.models.seq2seq_systems import CASES, batch_of
from tests.slow import others_slow

LANGUAGE_MODELS = {
    "lstm lm": lambda: LSTMLM(30, num_layers=1, embedding_dim=8, units=16),
    "transformer lm": lambda: TransformerLM(
        30, num_layers=1, model_dim=16, ffn_dim=32, num_heads=2
    ),
}
OFTEN = {
    *("lstm", "location, luong", "location-aware, feeding"),
    *("tied embeddings", "transformer lm"),
}
pytestmark = pytest.mark.filterwarnings(
    "ignore:Layer .* does not have a `quantize` method"
)


def model_and_inputs(name):
    if name in LANGUAGE_MODELS:
        # Keras quantizes no input of no rows, as those of an empty prompt are.
        ids = np.random.randint(END + 1, 30, (3, 6))
        ids[:, 0] = START
        inputs = {"source_ids": ids[:, :3], "target_ids": ids}
        return LANGUAGE_MODELS[name](), inputs
    make, source = CASES[name]
    return make(), batch_of(source, 3)[0]


def quantize(model):
    model.quantize("int8")
    assert "int8" in {weight.dtype for weight in model.weights}


@pytest.mark.parametrize("name", others_slow([*CASES, *LANGUAGE_MODELS], OFTEN))
def test_a_model_answers_as_before(seed, name):
    model, inputs = model_and_inputs(name)
    expected = numpy_of(model(inputs))
    quantize(model)

    found = numpy_of(model(inputs))
    assert np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
    if not hasattr(model, "decode_step"):
        return
    state = model.encode(inputs)
    if hasattr(model, "decoding_constants"):
        state = {**state, "constants": model.decoding_constants()}
    steps = []
    for ids in inputs["target_ids"].T:
        logits, state = model.decode_step(ids, state)
        steps.append(numpy_of(logits))
    np.testing.assert_allclose(np.stack(steps, axis=1), found, atol=1e-4)


@pytest.mark.parametrize(
    "attention", [LocationAttention(9), LocationAwareAttention(8)]
)
def test_attention_that_reads_a_kernel(seed, attention):
    query, memory = keras.Input((None, 16)), keras.Input((None, 16))
    weights = keras.Input((None, None))
    given = {}
    if isinstance(attention, LocationAwareAttention):
        given = {"last_weights": weights}
    model = keras.Model(
        [query, memory, weights], attention(query, memory, **given)
    )
    arrays = [normal(2, 5, 16), normal(2, 7, 16), normal(2, 5, 7)]
    expected = numpy_of(model(arrays))
    model.quantize("int8")

    np.testing.assert_allclose(numpy_of(model(arrays)), expected, atol=0.1)


def test_a_decoder_block_without_a_memory(seed):
    inputs = keras.Input((None, 16))
    block = TransformerDecoderBlock(2, 8, 32, norm="both")
    model, array = keras.Model(inputs, block(inputs)), normal(2, 5, 16)
    expected = numpy_of(model(array))
    quantize(model)

    np.testing.assert_allclose(numpy_of(model(array)), expected, atol=0.2)
