import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import Dropout
from kseq.layers.random_numbers import random_bits
from tests.half_precision import HALF_POLICIES


def dropped(rate, *shape, **arguments):
    layer = Dropout(rate, **arguments)
    outputs = layer(ops.ones(shape, layer.compute_dtype), training=True)
    return ops.convert_to_numpy(ops.cast(outputs, "float32"))


def test_contract(tmp_path):
    inputs = keras.Input((None, 7))
    model = keras.Model(inputs, Dropout(0.25, seed=3)(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    assert model.output_shape == (None, None, 7)
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()
    x = np.ones((4, 5, 7), "float32")
    np.testing.assert_array_equal(
        model(x, training=True), loaded(x, training=True)
    )
    assert np.any(model(x, training=True) != model(x, training=True))


@pytest.mark.parametrize("policy", ["float32", *HALF_POLICIES])
def test_keeps_one_value_and_the_mean(seed, policy):
    outputs = dropped(0.25, 100, 101, dtype=policy)
    assert len(np.unique(outputs)) == 2
    assert outputs.max() == pytest.approx(4 / 3, rel=5e-3)
    assert (outputs == 0).mean() == pytest.approx(0.25, abs=0.03)


def test_features_are_dropped_independently(seed):
    kept = dropped(0.5, 40_000, 8) > 0
    correlation = np.corrcoef(kept.T) - np.eye(8)
    assert np.abs(correlation).max() < 0.04
    assert np.abs(kept.mean(axis=0) - 0.5).max() < 0.02


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_any_number_of_features(seed, size):
    assert dropped(0.5, 3, size).shape == (3, size)


@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.25, 0.5, 0.9, 0.9999])
def test_the_masks_are_those_of_integers(seed, rate):
    """Though what is compared are floats: bit for bit, whatever is drawn."""
    layer, same = Dropout(rate, seed=seed), keras.random.SeedGenerator(seed)
    for shape in ((1000, 512), (500, 7)):
        pairs = random_bits((shape[0], (shape[1] + 1) // 2), same)
        pairs = ops.convert_to_numpy(pairs)
        drops = round(rate * 2**15)
        kept = [pairs % 2**15 >= drops, pairs // 2**15 % 2**15 >= drops]
        np.testing.assert_array_equal(
            ops.convert_to_numpy(layer(ops.ones(shape), training=True)) > 0,
            np.concatenate(kept, axis=1)[:, : shape[1]],
        )


def test_all_or_nothing():
    assert np.all(dropped(0.0, 3, 4) == 1)
    assert np.all(dropped(1.0, 3, 4) == 0)
    assert np.all(np.array(Dropout(0.9)(np.ones((3, 4)))) == 1)


def test_bad_arguments():
    for rate in (1.5, -0.1, float("nan"), "x", None):
        with pytest.raises(ValueError, match=r"^rate must be a number"):
            Dropout(rate)
    with pytest.raises(ValueError, match="noise_shape must be None"):
        Dropout(0.5, noise_shape=(1, 2))
