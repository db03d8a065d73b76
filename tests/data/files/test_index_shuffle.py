import numpy as np
import pytest
import tensorflow as tf

from kseq.data.files.index_shuffle import index_shuffle


def shuffled(count, key, size=None):
    indices = tf.range(size or count, dtype=tf.int64)
    return index_shuffle(indices, count, key).numpy()


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_every_index_once(count):
    found = shuffled(count, (1, 0, 0))
    assert sorted(found) == list(range(count))


def test_each_part_of_the_key_decides():
    orders = [
        shuffled(1000, key).tolist()
        for key in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, -1))
    ]
    assert len({tuple(order) for order in orders}) == len(orders)
    assert shuffled(1000, (1, 0, 0)).tolist() == orders[0]


def test_keys_of_single_indices():
    keys = [(1, 0, 0), (5, 6, 7)]
    found = index_shuffle(tf.constant([3, 3], tf.int64), 1000, keys).numpy()
    assert found.tolist() == [shuffled(1000, key)[3] for key in keys]


@pytest.mark.parametrize("count", [29_000, 200_000, 2_000_000])
def test_neighbors_are_independent(count):
    """Four rounds, the default of TensorFlow, fail."""
    found = shuffled(count, (1, 0, 0), size=29_000)
    for distance in (1, 2, 4):
        pair = found[distance:], found[:-distance]
        assert abs(np.corrcoef(*pair)[0, 1]) < 0.04
    # Parts of the order have as many of the first half as random ones have.
    shares = (found.reshape(-1, 500) < count / 2).mean(axis=1)
    spread = shares.std() / np.sqrt(0.25 / 500)
    assert 0.65 < spread < 1.35


def test_similar_keys_are_independent():
    keys = tf.stack([tf.range(4000) * 7919, *[tf.zeros(4000, tf.int32)] * 2], 1)
    first, second = (
        index_shuffle(tf.fill([4000], tf.constant(i, tf.int64)), 2**30, keys)
        for i in (0, 1)
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.08
