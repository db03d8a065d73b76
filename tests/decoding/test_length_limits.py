import numpy as np
import tensorflow as tf

from kseq.decoding import length_limits


def test_each_from_its_own_length():
    lengths = tf.constant([4, 2, 5])
    np.testing.assert_array_equal(length_limits(lengths), [18, 14, 20])
    np.testing.assert_array_equal(
        length_limits(lengths, factor=1.5, offset=0), [6, 3, 7]
    )
    assert length_limits(tf.cast(lengths, tf.int64)).dtype == tf.int32


def test_empty_batch():
    assert length_limits(tf.zeros((0,), tf.int32)).shape == (0,)
