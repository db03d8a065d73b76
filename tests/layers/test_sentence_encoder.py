import keras
import numpy as np
import pytest

from kseq.layers import RecurrentPooling, SentenceEncoder
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import numpy_of
from tests.slow import slow

SIZES = {"embedding_dim": 4, "units": 3, "attention_units": 3}


def documents(shape=(5, 4, 9)):
    """Sentences of any length, some of them of none."""
    ids = np.random.randint(4, 30, size=shape)
    lengths = np.random.randint(0, shape[-1] + 1, size=shape[:-1])
    return np.where(np.arange(shape[-1]) < lengths[..., None], ids, 0)


def encoder(groups, like=None, **arguments):
    layer = SentenceEncoder(30, **SIZES, groups=groups, **arguments)
    layer.build((None, None, None))
    if like is not None:
        layer.set_weights(like.get_weights())
    return layer


# The contract.


def test_shapes_and_weights():
    layer, ids = encoder(groups=3), documents()
    output, weights = layer(ids, return_weights=True)

    assert output.shape == layer(ids).shape == (5, 4, 6)
    assert weights.shape == (5, 4, 9)
    assert layer.compute_output_shape((5, 4, 9)) == (5, 4, 6)
    assert len(layer.weights) == 10


def test_symbolic_shapes():
    ids = keras.Input((None, None), dtype="int32")
    output, weights = encoder(groups=2)(ids, return_weights=True)

    assert output.shape == (None, None, 6)
    assert weights.shape == (None, None, None)


def test_config():
    layer = encoder(groups=3, dropout=0.5)
    again = SentenceEncoder.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


# Values.


def test_is_an_embedding_and_a_pooling(seed):
    layer, ids = encoder(groups=2), documents((1, 6, 9))
    table, *others = layer.get_weights()
    pooling = RecurrentPooling(3, attention_units=3)
    pooling.build((None, None, 4))
    pooling.set_weights(others)

    output, weights = layer(ids, return_weights=True)
    expected = pooling(table[ids[0]], ids[0] != 0, return_weights=True)
    np.testing.assert_allclose(output[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(weights[0], expected[1], atol=1e-6)


@pytest.mark.parametrize("groups", [slow(2), 7, slow(50)])
def test_groups_change_nothing(seed, groups):
    grid, ids = encoder(groups=1), documents()
    found = encoder(groups, like=grid)(ids, return_weights=True)

    for value, expected in zip(
        found, grid(ids, return_weights=True), strict=True
    ):
        np.testing.assert_allclose(value, expected, atol=1e-6)


# Influence.


def test_padding_changes_nothing(seed):
    layer, ids = encoder(groups=3), documents()
    padded = np.pad(ids, ((0, 0), (0, 2), (0, 3)))
    output, weights = layer(padded, return_weights=True)
    expected, expected_weights = layer(ids, return_weights=True)

    np.testing.assert_allclose(output[:, :4], expected, atol=1e-6)
    np.testing.assert_allclose(weights[:, :4, :9], expected_weights, atol=1e-6)
    assert not numpy_of(output)[:, 4:].any()
    assert not numpy_of(weights)[:, 4:].any()
    assert not numpy_of(weights)[..., 9:].any()


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
@pytest.mark.parametrize("shape", [(2, 3, 1), (0, 3, 5), (2, 0, 5)])
def test_nothing_but_padding(dtype, shape):
    output, weights = encoder(groups=2, dtype=dtype)(
        np.zeros(shape, int), return_weights=True
    )
    assert output.shape == (*shape[:2], 6)
    assert not numpy_of(output).any()
    assert not numpy_of(weights).any()


def test_dropout_is_for_training(seed):
    layer, ids = encoder(groups=2, dropout=0.5), documents()
    np.testing.assert_array_equal(layer(ids), layer(ids, training=False))
    assert np.abs(layer(ids, training=True) - layer(ids)).max() > 1e-4


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="cuDNN is that of TensorFlow.",
)
@pytest.mark.parametrize("shape", [(1, 2, 3), (0, 2, 3)])
def test_groups_without_sentences_beside_a_gpu(seed, request, shape):
    """There are two sentences for four groups, or none."""
    layer, ids = encoder(groups=4), documents(shape)
    expected = layer(ids)
    by_cudnn = request.getfixturevalue("simulated_gpu")
    np.testing.assert_allclose(layer(ids), expected, atol=1e-5)
    assert by_cudnn


# Errors.


def test_groups_must_be_positive():
    with pytest.raises(ValueError, match="Received: groups=0"):
        encoder(groups=0)
