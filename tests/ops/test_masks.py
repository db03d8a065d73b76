import keras
import numpy as np

from kseq import ops
from tests.layers.arrays import normal, numpy_of

MASK = np.array([[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]], bool)


def test_real_positions_come_first(seed):
    places = keras.ops.convert_to_numpy(ops.packing_order(MASK))
    np.testing.assert_array_equal(
        places, [[1, 3, 0, 2], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    )
    x = normal(4, 4, 2)
    expected = np.take_along_axis(x, places[..., None], axis=1)
    np.testing.assert_array_equal(ops.gather_steps(x, places), expected)


def test_fewer_steps_and_no_rows(seed):
    x = normal(2, 5, 3)
    found = numpy_of(ops.gather_steps(x, np.array([[4], [0]])))
    np.testing.assert_array_equal(found, x[[0, 1], [4, 0]][:, None])
    places = ops.packing_order(MASK[:0])
    assert places.shape == (0, 4)
    assert ops.gather_steps(x[:0], places).shape == (0, 4, 3)
