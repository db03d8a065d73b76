import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.data import teacher_forcing


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_labels_are_shifted_by_one(dtype):
    labels = tf.constant(
        [[7, 8, 9, END], [7, END, PAD, PAD], [END, PAD, PAD, PAD]], dtype
    )

    target_ids = teacher_forcing(labels)

    assert target_ids.numpy().tolist() == [
        [START, 7, 8, 9],
        [START, 7, PAD, PAD],
        [START, PAD, PAD, PAD],
    ]
    assert target_ids.dtype == dtype


def test_labels_without_end_lose_their_last():
    """An answer that reached the limit of its length."""
    assert teacher_forcing([[7, 8]]).numpy().tolist() == [[START, 7]]


def test_nothing_is_shifted_to_nothing():
    assert teacher_forcing(tf.zeros((0, 3), tf.int32)).shape == (0, 3)


def test_arrays_are_fine():
    labels = np.array([[5, END]], "int32")
    np.testing.assert_array_equal(teacher_forcing(labels), [[START, 5]])
