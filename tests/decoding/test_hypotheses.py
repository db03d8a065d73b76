"""Length limits and scores of answers."""

import math

import numpy as np
import pytest
import tensorflow as tf

from kseq.decoding import length_limits, sequence_scores


def test_sum_of_log_probabilities_over_the_penalty():
    logits = tf.math.log([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1, 1, 1]]])
    labels, weights = tf.constant([[1, 2, 0]]), tf.constant([[1.0, 1, 0]])

    expected = math.log(0.25 * 0.8)
    for length_penalty, penalty in ((0, 1), (1, 7 / 6), (2, 49 / 36)):
        score = sequence_scores(
            logits, labels, weights, length_penalty=length_penalty
        )
        np.testing.assert_allclose(score, [expected / penalty], rtol=1e-5)


def test_a_mask_is_a_weight():
    logits, labels = tf.random.normal((2, 3, 4)), tf.ones((2, 3), tf.int32)
    mask = tf.constant([[True, True, False], [True, False, False]])
    expected = sequence_scores(logits, labels, tf.cast(mask, tf.float32))
    for weights in (mask, mask.numpy(), tf.cast(mask, tf.int32)):
        found = sequence_scores(logits, labels, weights)
        np.testing.assert_array_equal(found, expected)


def test_an_answer_of_nothing():
    zeros = tf.zeros((2, 3))
    score = sequence_scores(zeros[..., None], tf.cast(zeros, tf.int32), zeros)
    np.testing.assert_array_equal(score, [0, 0])


def test_computed_in_float32():
    logits = tf.random.normal((1, 40, 50))
    labels = tf.ones((1, 40), tf.int32)
    half = tf.cast(logits, tf.bfloat16)

    score = sequence_scores(half, labels, tf.ones((1, 40)))

    same = sequence_scores(tf.cast(half, tf.float32), labels, tf.ones((1, 40)))
    np.testing.assert_allclose(score, same, rtol=1e-6)


def test_each_from_its_own_length():
    lengths = tf.constant([4, 2, 5])
    np.testing.assert_array_equal(length_limits(lengths), [18, 14, 20])
    np.testing.assert_array_equal(
        length_limits(lengths, factor=1.5, offset=0), [6, 3, 7]
    )
    assert length_limits(tf.cast(lengths, tf.int64)).dtype == tf.int32


def test_empty_batch():
    assert length_limits(tf.zeros((0,), tf.int32)).shape == (0,)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "x", None, []])
def test_arguments_out_of_range(value):
    ones = tf.ones((1, 1), tf.int32)
    for name in ("length_penalty", "penalty_offset"):
        with pytest.raises(ValueError, match=f"^{name} must be a finite"):
            sequence_scores(tf.ones((1, 1, 3)), ones, ones, **{name: value})
    with pytest.raises(ValueError, match=r"^factor must be a finite"):
        length_limits([3], factor=value)
    with pytest.raises(ValueError, match=r"^offset must be an integer"):
        length_limits([3], offset=value)
