"""A score of one's own, by a subclass that overrides `energies`."""

import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import AttentionDecoder, BahdanauAttention, LuongAttention
from kseq.ops import dot_energies
from tests.layers.arrays import normal, numpy_of, randomize
from tests.slow import others_slow

MASK = np.arange(7) < [[7], [4]]


@keras.saving.register_keras_serializable(package="kseq_tests")
class CosineAttention(LuongAttention):
    def energies(self, query, keys):
        query, keys = map(ops.normalize, (query, keys))
        return dot_energies(query, keys)


@keras.saving.register_keras_serializable(package="kseq_tests")
class NegativeDistance(BahdanauAttention):
    def energies(self, query, keys):
        distances = self.query_projection(query)[:, :, None] - keys[:, None]
        return -ops.sum(self.scale**2 * ops.square(distances), axis=-1)


WIRINGS = ({}, {"input_feeding": True}, {"order": "bahdanau"})


@pytest.fixture(params=[CosineAttention(), NegativeDistance(units=3)])
def attention(request, seed):
    return request.param


def test_cosine(seed):
    query, memory = normal(2, 5, 6), normal(2, 7, 6)
    _, weights = CosineAttention()(query, memory, return_weights=True)
    query, memory = (
        x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (query, memory)
    )
    powers = np.exp(query @ memory.swapaxes(1, 2))
    expected = powers / powers.sum(axis=-1, keepdims=True)

    np.testing.assert_allclose(weights, expected, atol=1e-5)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_steps_of_hypotheses_equal_the_whole_sequence(attention, wiring):
    layer = AttentionDecoder(6, attention=attention, **wiring)
    inputs, memory = normal(6, 5, 4), normal(2, 7, 6)
    repeated = np.repeat(memory, 3, axis=0)
    layer(inputs, repeated)
    randomize(layer, 0.5)
    whole = layer(inputs, repeated, memory_mask=np.repeat(MASK, 3, axis=0))

    state, outputs = layer.start(repeated), []
    for x in inputs.swapaxes(0, 1):
        output, state = layer.step(
            x, state, layer.project_memory(memory), memory_mask=MASK
        )
        outputs.append(numpy_of(output))
    assert type(layer.attention) is type(attention)
    np.testing.assert_allclose(np.stack(outputs, axis=1), whole, atol=1e-5)


@pytest.mark.parametrize("wiring", others_slow(WIRINGS, WIRINGS[:1]))
def test_round_trip_through_a_file(attention, wiring, tmp_path):
    inputs, memory = keras.Input((None, 4)), keras.Input((7, 6))
    mask = keras.Input((7,), dtype="bool")
    layer = AttentionDecoder(6, attention=attention, **wiring)
    model = keras.Model(
        [inputs, memory, mask], layer(inputs, memory, memory_mask=mask)
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    values = [normal(2, 5, 4), normal(2, 7, 6), MASK]

    assert type(loaded.layers[-1].attention) is type(attention)
    np.testing.assert_array_equal(
        numpy_of(model(values)), numpy_of(loaded(values))
    )
