import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from kseq.data import masked_prediction_batches
from kseq.models import MaskedPrediction, TransformerClassifier
from tests.half_precision import HALF_POLICIES
from tests.models.few_steps import few_steps

VOCAB = 12
SIZES = {"num_layers": 1, "model_dim": 8, "ffn_dim": 8, "num_heads": 2}


def make(**more):
    return TransformerClassifier(VOCAB, 2, **SIZES, **more).piece_prediction()


def inputs(draw, batch=3, length=7, candidates=5):
    ids = draw.integers(1, VOCAB, (batch, length))
    places = np.tile([1, 4], (batch, 1))
    pieces = ids[:, [1, 4]]
    ids[:, [1, 4]] = 0
    drawn = draw.integers(1, VOCAB, candidates)
    return {
        "source_ids": ids,
        "places": places,
        "pieces": pieces,
        "candidates": np.tile(drawn, (batch, 1)),
    }


def logits_of(model, data):
    return ops.convert_to_numpy(model(data))


def test_equals_the_formula(seed):
    model, data = make(), inputs(np.random.default_rng(seed))
    model.projection.bias.assign(np.random.normal(size=8))
    hidden = ops.convert_to_numpy(model.classifier.encode(data["source_ids"]))
    table = ops.convert_to_numpy(model.classifier.embedding.vectors)
    kernel, bias = map(ops.convert_to_numpy, model.projection.weights)
    found = logits_of(model, data)
    assert found.shape == (3, 2, 6)
    others = data["candidates"][0]
    for row in range(3):
        for number, place in enumerate((1, 4)):
            piece = data["pieces"][row, number]
            query = hidden[row, place] @ kernel + bias
            expected = table[np.r_[piece, others]] @ query
            expected[1:][others == piece] = -3e4
            np.testing.assert_allclose(
                found[row, number], expected, rtol=1e-5, atol=1e-5
            )


def test_what_is_masked_is_not_seen(seed):
    """Neither the piece nor, as another reads it, the mask."""
    model, data = make(positions="none"), inputs(np.random.default_rng(seed))
    data["candidates"][:] = np.arange(1, 6)
    data["pieces"][:] = 7
    before = logits_of(model, data)
    same = logits_of(model, {**data, "pieces": data["pieces"] + 1})
    np.testing.assert_array_equal(before[..., 1:], same[..., 1:])
    kept = [0, 1, 2, 3, 5, 6]
    shorter = {**data, "source_ids": data["source_ids"][:, kept]}
    shorter["places"] = np.tile([1, 1], (3, 1))
    np.testing.assert_allclose(
        logits_of(model, shorter)[:, 0], before[:, 0], atol=1e-5
    )


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    data = inputs(np.random.default_rng(seed))
    model, exact = make(dtype=dtype), make()
    exact.set_weights(model.get_weights())
    found = logits_of(model, data)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, logits_of(exact, data), rtol=0.02, atol=0.15
    )


def test_round_trip_through_its_config(seed):
    data = inputs(np.random.default_rng(seed))
    model = make(dropout=0.1, dtype="mixed_bfloat16")
    again = MaskedPrediction.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(
        logits_of(model, data), logits_of(again, data)
    )
    assert again.get_config() == model.get_config()


@pytest.mark.slow
def test_trains_the_classifier_that_it_comes_from(new_seed):
    """Pieces that follow each other in a circle are restored after a while."""
    reader = TransformerClassifier(
        VOCAB, 2, **SIZES | {"model_dim": 32}, window=2, positions="relative"
    )
    rest = reader.classes.get_weights()
    model = reader.piece_prediction()
    model.compile(keras.optimizers.Adam(0.01), clip_norm=1.0)
    circle = tf.ragged.constant([[[*range(4, VOCAB)] * 40]], dtype="int32")
    batches = masked_prediction_batches(circle, batch_pieces=1024, seed=1)
    logs = model.fit(
        batches, steps_per_epoch=50, epochs=3, shuffle=False, verbose=0
    )
    assert logs.history["accuracy"][-1] > 0.9
    assert reader.embedding is model.classifier.embedding
    for before, after in zip(rest, reader.classes.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def batches(sizes):
    draw = np.random.default_rng(0)
    for size in sizes:
        shape = size, 2
        yield (
            inputs(draw, size),
            np.zeros(shape, "int32"),
            np.ones(shape, "float32"),
        )


@pytest.mark.slow  # the step itself is ExactModel's
def test_two_devices_and_micro_batches_equal_one(two_devices):
    """Also if one of them gets no rows."""
    sizes = (4, 3, 1)
    history, weights = few_steps(make, batches(sizes))
    with two_devices.scope():
        two = few_steps(make, batches(sizes))
    cut = few_steps(make, batches(sizes), accumulation_steps=2)
    for logs, others in (two, cut):
        for one, other in zip(weights, others, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        assert logs["loss"] == pytest.approx(history["loss"], rel=1e-5)
