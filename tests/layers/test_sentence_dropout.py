import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import SentenceDropout


def documents(count, sentences=6):
    """The last sentence of each is empty."""
    ids = np.random.randint(4, 30, (count, sentences, 5))
    ids[:, :, 3:] = 0
    ids[:, -1] = 0
    return ids


def dropped(ids, rate):
    layer = SentenceDropout(rate)
    return ops.convert_to_numpy(layer(ids, training=True))


def test_changes_nothing_without_training(seed):
    ids = documents(3)
    np.testing.assert_array_equal(SentenceDropout(0.9)(ids), ids)
    np.testing.assert_array_equal(dropped(ids, 0.0), ids)


def test_leaves_out_whole_sentences(seed):
    ids = documents(2000)
    found = dropped(ids, 0.25)
    is_kept = found.any(axis=-1)
    np.testing.assert_array_equal(found, ids * is_kept[..., None])
    assert not is_kept[:, -1].any()
    assert 0.73 < is_kept[:, :-1].mean() < 0.77


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_never_leaves_out_all(seed, rate):
    ids = documents(500, sentences=3)
    ids[:, 0] = 0  # one sentence with words
    np.testing.assert_array_equal(dropped(ids, rate), ids)


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 4), (0, 3, 4)])
def test_of_nothing_nothing_is_left(shape):
    assert dropped(np.zeros(shape, int), 0.5).shape == shape


def test_ids_stay_ids_in_a_functional_model():
    ids = keras.Input((None, 5), dtype="int32")
    assert SentenceDropout(0.5)(ids).dtype == "int32"


def test_config():
    layer = SentenceDropout(0.25, seed=3)
    again = SentenceDropout.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    with pytest.raises(ValueError, match="noise_shape"):
        SentenceDropout(0.25, noise_shape=(None, 1))
