import numpy as np
import pytest

from kseq.layers import RecurrentPooling
from tests.half_precision import HALF_POLICIES
from tests.layers.arrays import normal, numpy_of
from tests.layers.attention_checks import (
    NO_MEMORY,
    check_no_memory,
    check_round_trip,
)
from tests.layers.numpy_recurrence import recurrent_pooling


def built(**arguments):
    layer = RecurrentPooling(3, 5, **arguments)
    layer.build((None, None, 8))
    layer.set_weights([normal(*weight.shape) for weight in layer.weights])
    return layer


# The contract.


def test_shapes_and_weights():
    layer = RecurrentPooling(3, attention_units=5)
    inputs, mask = np.ones((2, 7, 8)), np.ones((2, 7), bool)
    output, weights = layer(inputs, mask, return_weights=True)

    assert output.shape == layer(inputs, mask).shape == (2, 6)
    assert weights.shape == (2, 7)
    assert layer.compute_output_shape((2, 7, 8)) == (2, 6)
    assert len(layer.weights) == 9


def test_round_trip_through_a_file(seed, tmp_path):
    check_round_trip(RecurrentPooling(3, 5), tmp_path, normal(2, 7, 8))


# Values.


def test_agrees_with_the_paper(seed):
    layer, inputs = built(), normal(1, 7, 8)
    output, weights = layer(inputs, np.ones((1, 7), bool), return_weights=True)
    expected, shares = recurrent_pooling(inputs[0], layer.get_weights())
    np.testing.assert_allclose(weights[0], shares, atol=1e-5)
    np.testing.assert_allclose(output[0], expected, atol=1e-5)


# Influence.


def test_padding_changes_nothing(seed):
    layer, inputs = built(), normal(2, 7, 8)
    padded = np.concatenate([inputs, normal(2, 3, 8)], axis=1)
    mask = np.arange(10) < np.full((2, 1), 7)
    output, weights = layer(padded, mask, return_weights=True)

    assert not numpy_of(weights)[:, 7:].any()
    np.testing.assert_allclose(output, layer(inputs, mask[:, :7]), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", *HALF_POLICIES])
def test_nothing_to_read(seed, dtype):
    layer, inputs = built(dtype=dtype), normal(2, 7, 8)
    check_no_memory(*layer(inputs, NO_MEMORY, return_weights=True))


# Errors.


def test_arguments_out_of_range():
    with pytest.raises(ValueError, match="Received: units=0"):
        RecurrentPooling(0, 5)
    with pytest.raises(ValueError, match="Received: attention_units=True"):
        RecurrentPooling(3, True)
