import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.models.auxiliary_losses import _with_row_losses, ctc_losses
from kseq.models.exact_model import TokenLosses
from tests.layers.arrays import normal

TIME = 4
LABELS = np.array(
    [
        [1, 2, END, PAD],
        [2, 2, END, PAD],  # needs three positions
        [1, END, PAD, PAD],
        [2, 1, 2, END],
        [1, 1, END, PAD],
    ]
)
LENGTHS = np.array([4, 3, 1, 4, 4])
NO_ROOM = {
    "shorter than the labels": ([1, 2, END], 1),
    "no position between equal labels": ([2, 2, END], 2),
    "no labels": ([END, PAD, PAD], 4),
    "padding alone": ([PAD, PAD, PAD], 4),
    "no memory": ([1, END, PAD], 0),
}


def brute_force(logits, labels):
    """The sum over all paths (S,) that read as the labels."""
    probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    total = 0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        read = [label for label, _ in itertools.groupby(path) if label != PAD]
        if read == list(labels):
            total += probabilities[range(len(path)), path].prod()
    return -np.log(total)


def mask_of(*lengths):
    return np.arange(TIME) < np.array(lengths)[:, None]


def test_ctc_is_a_sum_over_paths(seed):
    logits = 2 * normal(len(LABELS), TIME, 4)
    expected = [
        brute_force(row[:length], labels[: list(labels).index(END)])
        for row, labels, length in zip(logits, LABELS, LENGTHS, strict=True)
    ]

    found = ctc_losses(logits, mask_of(*LENGTHS), LABELS)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    weights = 0.5 * (LABELS != PAD)
    found = ctc_losses(logits, mask_of(*LENGTHS), LABELS, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert ctc_losses(logits[:0], mask_of()[:0], LABELS[:0]).shape == (0,)


@pytest.mark.parametrize("case", NO_ROOM)
def test_labels_without_room_have_no_loss(seed, case):
    """And no gradient, nor do they change that of another row."""
    labels, length = NO_ROOM[case]
    logits = tf.Variable(normal(2, TIME, 4))
    with tf.GradientTape() as tape:
        losses = ctc_losses(
            logits, mask_of(length, 4), np.array([labels, [1, 2, END]])
        )
        loss = tf.reduce_sum(losses)
    gradient = tape.gradient(loss, logits).numpy()

    assert losses[0] == 0 and losses[1] > 0
    assert not gradient[0].any()
    assert np.isfinite(gradient[1]).all() and gradient[1].any()


def test_no_weight_is_no_label(seed):
    logits, labels = normal(1, TIME, 4), np.array([[1, 2, END, PAD]])
    mask = mask_of(TIME)

    assert ctc_losses(logits, mask, labels, np.zeros((1, TIME)))[0] == 0


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-6])
def test_losses_of_rows_have_the_weight_of_their_row(scale):
    """Their mean does not depend on the scale of the weights."""
    weights = scale * np.array([[1.0, 1, 0], [2, 0, 0], [0, 0, 0]], "float32")
    losses = TokenLosses(tf.zeros((3, 3)), weights)
    found = _with_row_losses(losses, tf.constant([6.0, 3, 9])).loss

    np.testing.assert_allclose(found[0, :2], 3)
    np.testing.assert_allclose(found[1, 0], 3)
    mean = np.sum(found * weights) / weights.sum()
    assert mean == pytest.approx((1 * 6 + 2 * 3) / 4)
