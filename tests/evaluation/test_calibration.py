import tracemalloc

import numpy as np
import pytest
from scipy.special import softmax

from kseq.evaluation import fit_temperature, reliability


def test_answers_by_their_probability():
    """Bins include their upper limit; 1/15 is in the first one."""
    found = reliability([1 / 15, 0.0, 0.9, 0.92, 1.0], [0, 1, 1, 0, 1])
    assert found.counts.tolist() == [2, *[0] * 12, 2, 1]
    assert found.confidences[13:].tolist() == pytest.approx([0.91, 1])
    assert found.accuracies[[0, 13, 14]].tolist() == [0.5, 0.5, 1]
    error = (2 * abs(0.5 - 1 / 30) + 2 * abs(0.5 - 0.91) + 0) / 5
    assert found.error == pytest.approx(error)
    assert found.text == f"calibration error {100 * error:.2f} %  bins:15"
    assert reliability([], []).error == 0


def test_the_temperature_of_labels_is_found(new_seed):
    rng = np.random.default_rng(new_seed)
    logits = rng.normal(scale=3, size=(20_000, 4))
    for temperature in (0.5, 3.0):
        right = softmax(logits / temperature, axis=1).cumsum(axis=1)
        labels = (right < rng.random((len(logits), 1))).sum(axis=1)
        labels = np.minimum(labels, 3)
        probabilities = softmax(logits, axis=1)
        found = fit_temperature(probabilities, labels)
        assert found == pytest.approx(temperature, rel=0.05)

        scaled = softmax(logits / found, axis=1)
        before, after = (
            reliability(each.max(axis=1), each.argmax(axis=1) == labels).error
            for each in (probabilities, scaled)
        )
        assert after < 0.02 < before


def test_a_temperature_is_fitted_in_little_memory(new_seed):
    """For 8 MB of probabilities it took 96 MB."""
    rng = np.random.default_rng(new_seed)
    probabilities = softmax(rng.normal(size=(200, 10_000)), axis=1)
    probabilities = probabilities.astype("float32")
    classes = rng.integers(10_000, size=200)
    fit_temperature(probabilities[:1], classes[:1])  # imports
    tracemalloc.start()
    fit_temperature(probabilities, classes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < probabilities.nbytes


@pytest.mark.parametrize(
    ("probabilities", "classes", "expected"),
    [
        ([[0.6, 0.4], [0.1, 0.9]], [0, 1], 1),  # all are right
        ([[1.0, 0.0]], [0], 1),
        ([[1.0, 0.0], [0.0, 1.0]], [1, 0], 100),  # all are wrong
        ([[1.0, 0.0], [1.0, 0.0], [0.9, 0.1]], [0, 1, 0], None),
        ([[1.0], [1.0]], [0, 0], 1),  # one class
    ],
)
def test_temperatures_are_finite(probabilities, classes, expected):
    found = fit_temperature(np.float32(probabilities), classes)
    assert 0.01 <= found <= 100
    assert expected in (None, pytest.approx(found, rel=0.01))
