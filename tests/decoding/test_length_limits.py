import numpy as np

from kseq.decoding import length_limits


def test_each_from_its_own_real_length(source_ids):
    np.testing.assert_array_equal(length_limits(source_ids), [18, 14, 20])
    np.testing.assert_array_equal(
        length_limits(source_ids, factor=1.5, offset=0), [6, 3, 7]
    )
    np.testing.assert_array_equal(length_limits(source_ids[1:2, :2]), [14])


def test_empty_batch(source_ids):
    assert length_limits(source_ids[:0]).shape == (0,)
