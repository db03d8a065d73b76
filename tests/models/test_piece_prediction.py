import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from kseq.data import piece_prediction_batches
from kseq.models import FlatAttention, HierarchicalAttention, PiecePrediction
from tests.half_precision import HALF_POLICIES
from tests.layers.numpy_recurrence import gru
from tests.models.few_steps import few_steps

VOCAB = 12
SIZES = {"embedding_dim": 6, "units": 4, "attention_units": 3}


def make(family=FlatAttention, **more):
    return family(VOCAB, 2, **SIZES, **more).piece_prediction()


def inputs(batch=3, length=7, candidates=5):
    drawn = np.random.randint(VOCAB, size=candidates)
    return {
        "source_ids": np.random.randint(VOCAB, size=(batch, length)),
        "candidates": np.tile(drawn, (batch, 1)),
    }


def logits_of(model, data):
    return ops.convert_to_numpy(model(data))


@pytest.mark.parametrize("family", [FlatAttention, HierarchicalAttention])
def test_equals_the_formula(seed, family):
    """Piece by piece, in both directions."""
    model, data = make(family), inputs()
    table, *weights = model.get_weights()
    forward, backward = weights[:3], weights[3:6]
    (ahead, ahead_bias), (back, back_bias) = weights[6:8], weights[8:]
    found = logits_of(model, data)
    assert found.shape == (3, 5, 2, 6)
    others = data["candidates"][0]
    for row, ids in enumerate(data["source_ids"]):
        for t in range(1, 6):
            choices = table[np.r_[ids[t], others]]
            read = gru(table[ids[:t]], *forward)[-1]
            one = choices @ (read @ ahead + ahead_bias)
            read = gru(table[ids[:t:-1]], *backward)[-1]
            other = choices @ (read @ back + back_bias)
            expected = np.stack([one, other])
            expected[:, 1:][:, others == ids[t]] = -3e4
            np.testing.assert_allclose(found[row, t - 1], expected, atol=1e-4)


def test_a_piece_does_not_predict_itself(seed):
    """Its neighbours alone decide the logits of the candidates."""
    model, data = make(), inputs()
    data["candidates"][:] = np.arange(5)
    data["source_ids"][:] = np.random.randint(5, VOCAB, size=(3, 7))
    before = logits_of(model, data)
    changed = data["source_ids"].copy()
    changed[:, 3] = 5 + (changed[:, 3] - 4) % (VOCAB - 5)
    after = logits_of(model, {**data, "source_ids": changed})
    same = np.isclose(before, after, atol=1e-6)[..., 1:].all(axis=-1)
    assert same[:, :3, 0].all()  # pieces 1 to 3, from those before
    assert same[:, 2:, 1].all()  # pieces 3 to 5, from those after
    assert not same[:, 3:, 0].any()
    assert not same[:, :2, 1].any()


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    model, data = make(dtype=dtype), inputs()
    exact = make()
    exact.set_weights(model.get_weights())
    found = logits_of(model, data)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, logits_of(exact, data), rtol=0.01, atol=0.1
    )


@pytest.mark.slow
def test_trains_the_classifier_that_it_comes_from(seed):
    """Pieces that follow each other in a circle are predicted after a while."""
    reader = FlatAttention(VOCAB, 2, **SIZES)
    rest = reader.classes.get_weights()
    model = reader.piece_prediction()
    model.compile(keras.optimizers.Adam(0.05))
    circle = tf.ragged.constant([[list(range(VOCAB)) * 20]], dtype="int32")
    batches = piece_prediction_batches(circle, batch_pieces=64, seed=1)
    logs = model.fit(
        batches, steps_per_epoch=20, epochs=4, shuffle=False, verbose=0
    )
    assert logs.history["accuracy"][-1] > 0.95
    assert reader.embedding.vectors is model.embedding.vectors
    for before, after in zip(rest, reader.classes.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def batches(sizes):
    draw = np.random.default_rng(0)
    for size in sizes:
        drawn = np.tile(draw.integers(VOCAB, size=5), (size, 1))
        yield (
            {
                "source_ids": draw.integers(VOCAB, size=(size, 6)),
                "candidates": drawn,
            },
            np.zeros((size, 4, 2), "int32"),
            np.ones((size, 4, 2), "float32"),
        )


@pytest.mark.slow  # the step itself is ExactModel's
def test_micro_batches_change_nothing():
    history, weights = few_steps(make, batches((4, 3)))
    cut, cut_weights = few_steps(make, batches((4, 3)), accumulation_steps=2)
    for one, other in zip(weights, cut_weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert cut["loss"] == pytest.approx(history["loss"], rel=1e-5)


@pytest.mark.slow
def test_two_devices_equal_one(two_devices):
    """Also if one of them gets no rows."""
    history, weights = few_steps(make, batches((4, 3, 1)))
    with two_devices.scope():
        two, two_weights = few_steps(make, batches((4, 3, 1)))
    for one, other in zip(weights, two_weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert two["loss"] == pytest.approx(history["loss"], rel=1e-5)


def test_round_trip_through_its_config(seed):
    model, data = make(dropout=0.1, dtype="mixed_bfloat16"), inputs()
    again = PiecePrediction.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(
        logits_of(model, data), logits_of(again, data)
    )
    assert again.get_config() == model.get_config()
