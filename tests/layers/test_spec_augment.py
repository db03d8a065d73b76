import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import SpecAugment
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of

TENSORFLOW = keras.backend.backend() == "tensorflow"
NO_MASKS = {"time_masks": 0, "feature_masks": 0}
MASK = np.arange(30) < [[30], [11], [1], [0]]


def augmented(source, mask, **arguments):
    outputs = SpecAugment(**arguments)(source, mask, training=True)
    return numpy_of(outputs[0]), np.array(outputs[1])


def runs_of(hidden):
    """How many runs of True are in a vector, and how long they are together."""
    edges = np.diff(np.pad(hidden, 1).astype(int))
    return (edges == 1).sum(), hidden.sum()


# The contract.


def test_contract(tmp_path):
    source, mask = keras.Input((None, 5)), keras.Input((None,), dtype="bool")
    outputs = SpecAugment(stretch=0.5, seed=3)(source, mask)
    model = keras.Model([source, mask], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = [normal(4, 30, 5), MASK]

    assert [output.shape for output in outputs] == [
        (None, None, 5),
        (None,) * 2,
    ]
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()
    once = model(inputs, training=True)
    for one, again in zip(once, loaded(inputs, training=True), strict=True):
        np.testing.assert_array_equal(one, again)
    assert np.any(model(inputs, training=True)[0] != once[0])


def test_nothing_changes_outside_of_training(seed):
    source = normal(4, 30, 5)
    found, mask = SpecAugment(stretch=0.5)(source, MASK)

    np.testing.assert_array_equal(found, source)
    np.testing.assert_array_equal(mask, MASK)


@pytest.mark.skipif(not TENSORFLOW, reason="all lengths of JAX are known")
def test_a_graph_of_any_length(seed):
    import tensorflow as tf

    layer = SpecAugment(stretch=0.3)

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None, 5)),
            tf.TensorSpec((None, None), tf.bool),
        ]
    )
    def traced(source, mask):
        return layer(source, mask, training=True)

    for length in (1, 7, 10):
        found, found_mask = traced(np.ones((4, length, 5)), MASK[:, :length])
        assert found.shape == (4, length + -(-3 * length // 10), 5)
        assert found.shape[:2] == found_mask.shape


# Masks.


def test_masks_of_time(seed):
    """One run of zeros in each row, of all widths and at all positions."""
    mask = np.repeat(np.arange(12) < [[9]], 2000, axis=0)
    found, _ = augmented(
        np.ones((2000, 12, 3)),
        mask,
        time_masks=1,
        time_width=4,
        feature_masks=0,
    )
    hidden = (found == 0).all(axis=-1)
    counts, widths = np.transpose([runs_of(row) for row in hidden])

    assert (found == ~hidden[..., None]).all()
    assert not hidden[:, 9:].any()
    assert counts.max() == 1
    np.testing.assert_allclose(np.bincount(widths) / 2000, 0.2, atol=0.06)
    for width in (1, 4):
        starts = hidden[widths == width].argmax(axis=1)
        shares = np.bincount(starts) / len(starts)
        np.testing.assert_allclose(shares, 1 / (10 - width), atol=0.09)


def test_masks_of_features(seed):
    found, _ = augmented(
        np.ones((500, 4, 6)),
        np.ones((500, 4), bool),
        time_masks=0,
        feature_masks=2,
        feature_width=9,
    )
    hidden = (found == 0).all(axis=1)

    assert (found == ~hidden[:, None]).all()
    assert {runs_of(row)[0] for row in hidden} == {0, 1, 2}
    assert hidden.all(axis=1).any()


def test_a_mask_is_not_longer_than_its_row(seed):
    found, mask = augmented(np.ones((4, 30, 5)), MASK, time_width=100)

    np.testing.assert_array_equal(mask, MASK)
    assert np.isin(found, [0, 1]).all()


# Stretching.


def test_stretched_rows_are_interpolated(seed):
    """The rows are straight lines, and remain so."""
    lengths = np.array([30, 11, 1, 0] * 100)
    mask = np.arange(30) < lengths[:, None]
    line = np.where(mask, np.arange(30) + 1.0, 99)[..., None]
    found, new_mask = augmented(line, mask, stretch=0.5, **NO_MASKS)
    found, new = found[..., 0], new_mask.sum(axis=1)

    assert found.shape == new_mask.shape == (400, 45)
    assert (new_mask == (np.arange(45) < new[:, None])).all()
    assert not found[~new_mask].any()
    for length, least, most in (
        (30, 15, 45),
        (11, 5, 17),
        (1, 1, 2),
        (0, 0, 0),
    ):
        assert least <= new[lengths == length].min()
        assert new[lengths == length].max() <= most
    assert len(set(new[lengths == 30])) > 20
    for row, old, count in zip(found, lengths, new, strict=True):
        points = (np.arange(count) + 0.5) * old / max(count, 1) + 0.5
        expected = np.clip(points, min(old, 1), old)
        np.testing.assert_allclose(row[:count], expected, atol=1e-4)


def test_a_factor_of_one_changes_nothing(seed):
    source = normal(4, 30, 5)
    found, mask = augmented(source, MASK, stretch=1e-6, **NO_MASKS)

    np.testing.assert_array_equal(mask, np.pad(MASK, [(0, 0), (0, 1)]))
    np.testing.assert_allclose(
        found[:, :30], source * MASK[..., None], atol=1e-6
    )


@pytest.mark.parametrize("dtype", HALF_POLICIES)
def test_half_precision(seed, dtype):
    """Positions above 2048 are not integers of float16."""
    source = np.cos(np.arange(4000) / 500)[None, :, None]
    mask = np.ones((1, 4000), bool)
    options = {"stretch": 0.25, "seed": 1, **NO_MASKS}
    found, new_mask = SpecAugment(dtype=dtype, **options)(
        source, mask, training=True
    )
    expected, expected_mask = augmented(source, mask, **options)

    assert ops.dtype(found) == dtype.removeprefix("mixed_")
    np.testing.assert_array_equal(new_mask, expected_mask)
    np.testing.assert_allclose(numpy_of(found), expected, atol=0.02)


# Errors.


@pytest.mark.parametrize(
    "arguments",
    [
        {"time_masks": -1},
        {"time_width": 1.5},
        {"feature_masks": True},
        {"feature_width": None},
        {"stretch": 1},
        {"stretch": -0.1},
        {"stretch": "0.1"},
    ],
)
def test_arguments_out_of_range(arguments):
    [name] = arguments
    with pytest.raises(ValueError, match=f"Received: {name}="):
        SpecAugment(**arguments)
