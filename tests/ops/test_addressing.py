"""Cases done with a pencil; a whole machine is compared in the layer's test."""

import keras
import numpy as np
import pytest

from kseq import ops
from tests.layers.arrays import normal, numpy_of


def array(*values):
    return np.array(values, "float32")


def test_content_is_the_cosine_times_the_strength():
    memory = array([[1, 0], [0, 5], [-2, 0]])
    keys = array([[3, 0], [0, 1]])
    found = ops.content_weights(memory, keys, array([2, 0]))
    e = np.exp([2, 0, -2])
    np.testing.assert_allclose(found[0], [e / e.sum(), [1 / 3] * 3], atol=1e-6)


def test_a_vector_of_zeros_is_like_no_key():
    memory, keys = (
        np.zeros((1, 3, 2), "float32"),
        np.zeros((1, 1, 2), "float32"),
    )
    found = ops.content_weights(memory, keys, array([5]))
    np.testing.assert_allclose(found, np.full((1, 1, 3), 1 / 3), atol=1e-6)
    found = ops.content_weights(memory, keys + 1, array([5]))
    np.testing.assert_allclose(found, np.full((1, 1, 3), 1 / 3), atol=1e-6)


def test_the_gate_chooses_between_content_and_the_last_weighting():
    content, last = array([[1, 0]] * 3), array([[0, 1]] * 3)
    found = ops.interpolate(content, last, array([1, 0, 0.25]))
    np.testing.assert_array_equal(found[0], [[1, 0], [0, 1], [0.25, 0.75]])


def test_a_shift_goes_round():
    weights = array([[1, 0, 0, 0]] * 4)
    shifts = array(
        [[0, 0, 0, 1, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0.5, 0, 0.5, 0]]
    )
    expected = [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0.5, 0, 0.5]]
    np.testing.assert_array_equal(
        ops.shift_weights(weights, shifts)[0], expected
    )


def test_a_shift_of_nothing_is_none():
    weights = normal(2, 3, 4)
    found = ops.shift_weights(weights, np.ones((2, 3, 1), "float32"))
    np.testing.assert_array_equal(found, weights)


def test_sharpening_is_a_power():
    found = ops.sharpen(array([[0.1, 0.2, 0.7], [0.5, 0.5, 0]]), array([2, 1]))
    np.testing.assert_allclose(
        found[0],
        [np.array([0.01, 0.04, 0.49]) / 0.54, [0.5, 0.5, 0]],
        atol=1e-6,
    )


@pytest.mark.parametrize("power", [1.0, 20.0, 1000.0])
def test_sharpened_weights_of_any_size_are_a_distribution(power):
    weights = array([[1e-38, 1e-20, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    found = numpy_of(ops.sharpen(weights, array([power] * 3)))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-6)


def test_reading_is_a_sum_of_slots():
    memory = array([[1, 2], [3, 4], [5, 6]])
    found = ops.read_slots(memory, array([[0, 1, 0], [0.5, 0, 0.5]]))
    np.testing.assert_array_equal(found[0], [[3, 4], [3, 4]])


def test_heads_erase_and_then_add():
    """Both heads write to the second slot, whatever their order."""
    memory = array([[1, 2], [3, 4], [5, 6]])
    weights = array([[0, 1, 0], [0, 0.5, 0.5]])
    erase, add = array([[1, 0], [1, 1]]), array([[10, 20], [2, 2]])
    expected = [[1, 2], [0 + 10 + 1, 2 + 20 + 1], [2.5 + 1, 3 + 1]]
    for order in ([0, 1], [1, 0]):
        found = ops.write_slots(
            memory, weights[:, order], erase[:, order], add[:, order]
        )
        np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_what_is_erased_and_written_is_read_again():
    weights = keras.ops.one_hot(np.array([[2]]), 4)
    ones = np.ones((1, 1, 3), "float32")
    memory = ops.write_slots(normal(1, 4, 3), weights, ones, 7 * ones)
    np.testing.assert_array_equal(ops.read_slots(memory, weights), 7 * ones)
