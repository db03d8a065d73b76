import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import LearnedPositionalEmbedding, SinusoidalPositionalEncoding
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import numpy_of


def paper_sinusoids(length, dim):
    """Section 3.5, in float64, its interleaved features sorted apart."""
    position, i = np.arange(length)[:, None], np.arange(dim // 2)
    angles = position / 10000 ** (2 * i / dim)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


@pytest.fixture(params=["sinusoidal", "learned"])
def make(request, seed):
    if request.param == "sinusoidal":
        return SinusoidalPositionalEncoding
    return lambda **kwargs: LearnedPositionalEmbedding(max_length=12, **kwargs)


# The contract.


def test_shapes(make):
    layer = make()

    assert layer(np.zeros((2, 5, 8))).shape == (2, 5, 8)
    assert layer.compute_output_shape((2, None, 8)) == (2, None, 8)
    assert layer(keras.Input((None, 8))).shape == (None, None, 8)


def test_round_trip_through_a_file(make, tmp_path):
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, make()(inputs, start=3))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    x = np.random.normal(size=(2, 5, 8))
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()
    np.testing.assert_array_equal(model(x), loaded(x))


@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_half_precision(make, policy):
    x = np.random.normal(size=(2, 5, 8))
    exact, half = make(), make(dtype=policy)
    exact.build(x.shape)
    half.build(x.shape)
    half.set_weights(exact.get_weights())

    assert half(x).dtype == half.compute_dtype
    np.testing.assert_allclose(numpy_of(half(x)), exact(x), atol=0.05)


# Values.


def test_sinusoids_are_those_of_the_paper():
    encoded = SinusoidalPositionalEncoding()(np.zeros((1, 600, 16)))

    np.testing.assert_allclose(encoded[0], paper_sinusoids(600, 16), atol=1e-4)


def test_sinusoids_of_far_positions_survive_half_precision():
    layer = SinusoidalPositionalEncoding(dtype="mixed_bfloat16")
    encoded = numpy_of(layer(np.zeros((1, 600, 16))))[0]

    np.testing.assert_allclose(encoded, paper_sinusoids(600, 16), atol=1e-2)
    assert len(np.unique(encoded, axis=0)) == 600


def test_learned_rows_are_added():
    layer = LearnedPositionalEmbedding(max_length=3)
    layer.build((None, None, 2))
    layer.set_weights([np.array([[1, 2], [3, 4], [5, 6]])])

    np.testing.assert_array_equal(
        layer(np.full((1, 2, 2), 10.0), start=1), [[[13, 14], [15, 16]]]
    )


# Agreement.


def test_steps_equal_the_whole_sequence(make):
    x = np.random.normal(size=(2, 6, 8)).astype("float32")
    layer = make()
    whole = layer(x)
    steps = [layer(x[:, t : t + 1], start=np.int32(t)) for t in range(6)]
    rest = layer(x[:, 2:], start=2)

    np.testing.assert_allclose(np.concatenate(steps, 1), whole, atol=1e-6)
    np.testing.assert_allclose(rest, whole[:, 2:], atol=1e-6)


def test_each_row_has_its_own_start(make):
    x = np.random.normal(size=(3, 5, 8)).astype("float32")
    layer, starts = make(), np.array([0, 2, 7], "int32")
    each = [layer(x[i : i + 1], start=start) for i, start in enumerate(starts)]
    np.testing.assert_allclose(
        layer(x, start=starts), np.concatenate(each), atol=1e-6
    )
    # Of positions before the first, those from 0 are as they are.
    before = layer(x, start=ops.convert_to_tensor([-2, -1, 0]))
    np.testing.assert_allclose(before[0, 2:], layer(x[:1, 2:])[0], atol=1e-6)
    assert np.isfinite(numpy_of(before)).all()


@pytest.mark.parametrize("axes", [(2,), (3,), (2, 3)])
def test_each_row_of_several_axes_has_its_own_start(make, axes):
    x = np.random.normal(size=(3, *axes, 4, 8)).astype("float32")
    layer, starts = make(), np.array([0, 2, 7], "int32")
    each = [layer(x[i], start=start) for i, start in enumerate(starts)]
    np.testing.assert_allclose(layer(x, start=starts), each, atol=1e-6)


def test_positions_past_the_table_get_its_last_row(seed):
    layer = LearnedPositionalEmbedding(max_length=4)
    x = np.zeros((1, 3, 8))

    past = numpy_of(layer(x, start=ops.convert_to_tensor(2)))[0]
    rows = layer.get_weights()[0]
    np.testing.assert_array_equal(past, rows[[2, 3, 3]])


def test_leading_axes_are_independent(make):
    x = np.random.normal(size=(2, 3, 5, 8)).astype("float32")
    layer = make()
    rows = layer(x.reshape(6, 5, 8))

    np.testing.assert_allclose(
        layer(x), numpy_of(rows).reshape(x.shape), atol=1e-6
    )
    assert layer(keras.Input((3, None, 8))).shape == (None, 3, None, 8)


# Errors.


def test_errors():
    for inputs in (np.zeros((1, 5, 7)), keras.Input((None, 7))):
        with pytest.raises(ValueError, match="dim=7"):
            SinusoidalPositionalEncoding()(inputs)
    with pytest.raises(ValueError, match="max_length=0"):
        LearnedPositionalEmbedding(max_length=0)
    with pytest.raises(ValueError, match=r"max_length=2\.5"):
        LearnedPositionalEmbedding(max_length=2.5)
    with pytest.raises(ValueError, match="position 5"):
        LearnedPositionalEmbedding(max_length=4)(np.zeros((1, 5, 8)))
    with pytest.raises(ValueError, match="position 5"):
        LearnedPositionalEmbedding(max_length=4)(np.zeros((1, 3, 5, 8)))
    with pytest.raises(ValueError, match="position 5"):
        LearnedPositionalEmbedding(max_length=4)(np.zeros((1, 3, 8)), start=2)


def test_a_known_length_is_refused_when_a_model_is_built():
    layer = LearnedPositionalEmbedding(max_length=4)
    assert layer(keras.Input((4, 8))).shape == (None, 4, 8)
    with pytest.raises(ValueError, match="position 5"):
        layer(keras.Input((5, 8)))
