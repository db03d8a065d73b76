"""Sequences of vectors to source inputs."""

import numpy as np
import pytest

from kseq.data import DataError, VectorPreprocessor
from kseq.data.algorithms.as_vectors import as_vectors

NAN = float("nan")


def test_vectors_are_unchanged_and_padding_is_zeros():
    vectors = [[[0.5, -1], [2, 0]], [[1, 1], [NAN, NAN]], [[NAN, 1], [NAN, 0]]]
    source = VectorPreprocessor(2)(np.array(vectors))
    assert source.inputs["source"].numpy().tolist() == [
        *([[0.5, -1], [2, 0]], [[1, 1], [0, 0]], [[0, 0], [0, 0]])
    ]
    assert source.lengths.numpy().tolist() == [2, 1, 0]
    assert source.blank.numpy().tolist() == [False, False, True]
    assert not source.truncated.numpy().any()


@pytest.mark.parametrize("rows", [0, 2])
def test_no_vector_is_padded_to_one(rows):
    source = VectorPreprocessor(3)(np.zeros((rows, 0, 3)))
    assert source.inputs["source"].shape == (rows, 1, 3)
    assert source.blank.shape == (rows,)


@pytest.mark.parametrize("size", [0, -1, 1.0, True, "3", None, 2**31])
def test_a_wrong_size(size):
    with pytest.raises(ValueError, match="Received: num_features="):
        VectorPreprocessor(size)


@pytest.mark.parametrize(
    "sequence", [[[0, 1], [True, 0.5]], np.ones((4, 2), "float16"), [], ()]
)
def test_lists_and_arrays_are_vectors(sequence):
    vectors = as_vectors(sequence, 2)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(sequence), 2)
    assert vectors.tolist() == np.reshape(sequence, (-1, 2)).tolist()


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ([1, 2], "vectors of 2 numbers; found the shape (2,)"),
        ([[1, 2, 3]], "vectors of 2 numbers; found the shape (1, 3)"),
        ([[]], "found the shape (1, 0)"),
        (5, "found the shape ()"),
        ([[1, 2], [3]], "not an array of numbers"),
        ([["1", "0"]], "not an array of numbers"),
        ([[1, None]], "not an array of numbers"),
        ([[10**400, 1]], "not an array of numbers"),
        ({"a": 1}, "not an array of numbers"),
        (None, "not an array of numbers"),
        ([[1, NAN]], "expected finite numbers"),
        ([[1, 1e300]], "expected finite numbers"),
    ],
)
def test_what_is_no_sequence_of_vectors(sequence, message):
    with pytest.raises(DataError) as caught:
        as_vectors(sequence, 2)
    assert message in str(caught.value)
