"""Calibration: whether probabilities match how often answers are right."""

from typing import NamedTuple

import numpy as np

_BINS = 15
_LIMITS = 0.01, 100  # of a temperature
_BLOCK = 2**16  # probabilities that are scaled at once
_MOST = 2**26  # probabilities that a temperature is fitted to: 256 MiB


class Reliability(NamedTuple):
    """How often answers are right, by their probability.

    Args:
        counts: (15,) int, answers with a probability in each fifteenth of 0
            to 1.
        confidences: (15,) float, their mean probability; 0 where there are
            none.
        accuracies: (15,) float, the fraction of them that is right.
    """

    counts: np.ndarray
    confidences: np.ndarray
    accuracies: np.ndarray

    @property
    def error(self):
        """The expected calibration error, 0 to 1.

        ECE = sum over the bins of counts / N * |accuracy - confidence|
        """
        gaps = np.abs(self.accuracies - self.confidences)
        return float(self.counts @ gaps / max(self.counts.sum(), 1))

    @property
    def text(self):
        """The error as a report prints it."""
        return f"calibration error {100 * self.error:.2f} %  bins:{_BINS}"


def reliability(probabilities, are_right):
    """Sorts answers into bins of their probability.

    Args:
        probabilities: (N,) float, of the answers that were given.
        are_right: (N,) bool.

    Returns:
        `Reliability`.

    Example:
        >>> found = reliability([0.9, 0.9, 0.6], [True, False, True])
        >>> found.text
        'calibration error 40.00 %  bins:15'

    Reference:
        Guo et al. 2017, arXiv:1706.04599, equation 3.
    """
    probabilities = np.asarray(probabilities, float)
    # As in the paper, a bin includes its upper limit.
    bins = np.clip(np.ceil(probabilities * _BINS).astype(int) - 1, 0, None)
    counts, *sums = (
        np.bincount(bins, weights=weights, minlength=_BINS)
        for weights in (None, probabilities, np.asarray(are_right, float))
    )
    return Reliability(counts, *(each / np.maximum(counts, 1) for each in sums))


def fitting_sample(count, width):
    """Chooses examples to fit a temperature to.

    These are all, or as many as fit into memory, drawn with a fixed seed.

    Args:
        count: int, N, the examples.
        width: float, the mean number of probabilities of an example.

    Returns:
        (M,) int, their positions in ascending order.
    """
    most = max(1, int(_MOST / max(width, 1)))
    if count <= most:
        return np.arange(count)
    draw = np.random.default_rng(0)
    return np.sort(draw.choice(count, most, replace=False))


def fit_temperature(probabilities, classes):
    """The temperature T with the lowest cross-entropy.

        softmax(logits / T)

    A higher temperature makes probabilities more equal; the order of the
    classes does not change. If all answers are right, a lower temperature is
    always better, and 1 is returned.

    Args:
        probabilities: (N, C) float, N at least 1, what a softmax gave.
        classes: (N,) int, the true ones.

    Returns:
        A float, 0.01 to 100.

    Example:
        >>> fit_temperature([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8]], [0, 1, 1])
        2.0

    Reference:
        Guo et al. 2017, arXiv:1706.04599, section 4.2.
    """
    from scipy.optimize import minimize_scalar  # slow to import
    from scipy.special import log_softmax

    probabilities, classes = np.asarray(probabilities), np.asarray(classes)
    if np.all(probabilities.argmax(axis=1) == classes):
        return 1.0
    size = max(1, _BLOCK // probabilities.shape[1])
    blocks = [
        (probabilities[start : start + size], classes[start : start + size])
        for start in range(0, len(probabilities), size)
    ]

    def loss(log_temperature):
        total = 0.0
        for rows, right in blocks:
            # Logits up to a constant of each row.
            logits = np.log(np.maximum(rows, 1e-37, dtype=float))
            scaled = log_softmax(logits / np.exp(log_temperature), axis=1)
            total -= scaled[np.arange(len(rows)), right].sum()
        return total / len(classes)

    found = minimize_scalar(loss, bounds=np.log(_LIMITS), method="bounded")
    return round(float(np.exp(found.x)), 4)
