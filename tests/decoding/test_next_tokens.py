import numpy as np
import pytest
import tensorflow as tf

from kseq.decoding.next_tokens import top_k


@pytest.mark.parametrize("size", [5, 128, 640, 1000])
def test_same_as_of_tensorflow(seed, size):
    rows = tf.random.normal((7, size))

    values, places = top_k(rows, 5)

    expected = tf.math.top_k(rows, 5)
    np.testing.assert_array_equal(values, expected.values)
    np.testing.assert_array_equal(places, expected.indices)


def test_no_place_beyond_the_row():
    row = tf.concat([tf.fill((1, 896), -np.inf), [[1.0]]], axis=1)

    values, places = top_k(row, 3)

    np.testing.assert_array_equal(values, [[1, -np.inf, -np.inf]])
    assert places[0, 0] == 896
    assert (places.numpy() < 897).all()
