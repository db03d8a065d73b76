"""Minimum Bayes risk: the answer that is most like the others."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

_ORDER = 6  # of the longest n-grams
_BETA = 2  # how much more recall counts than precision


def expected_chrf(candidates: Sequence[str]) -> np.ndarray:
    """The mean chrF of each candidate, with each of them as the reference.

    The candidates are samples or the n best of a search, all of which count
    the same. The one with the highest mean has the minimum Bayes risk.

    Args:
        candidates: sequence of N str, in which a text may come twice.

    Returns:
        (N,) float64, 0 to 100.

    Example:
        >>> expected_chrf(["a rose", "a rose", "roses"]).round(1)
        array([84.8, 84.8, 69.6])

    Reference:
        Eikema and Aziz 2022, arXiv:2108.04718; chrF as in sacreBLEU: Popovic
        2015, aclanthology.org/W15-3049.
    """
    texts = ["".join(text.split()) for text in candidates]
    precision, recall, orders = np.zeros((3, len(texts), len(texts)))
    for n in range(1, _ORDER + 1):
        counts = _counts(texts, n)  # (N, G)
        sizes = counts.sum(axis=1)
        matches = np.stack(
            [np.minimum(row, counts).sum(axis=1) for row in counts]
        )
        both = (sizes[:, None] > 0) & (sizes > 0)
        precision += matches / np.maximum(sizes, 1)[:, None] * both
        recall += matches / np.maximum(sizes, 1) * both
        orders += both
    precision, recall = (
        total / np.maximum(orders, 1) for total in (precision, recall)
    )
    below = _BETA**2 * precision + recall
    scores = (1 + _BETA**2) * precision * recall / np.where(below, below, 1)
    return 100 * scores.mean(axis=1)


def _counts(texts, n):
    """How often each text has each of the n-grams of all, (N, G) float."""
    found = [
        Counter(text[i : i + n] for i in range(len(text) - n + 1))
        for text in texts
    ]
    columns = {ngram: i for i, ngram in enumerate(set().union(*found))}
    counts = np.zeros((len(texts), len(columns)))
    for row, ngrams in zip(counts, found, strict=True):
        for ngram, count in ngrams.items():
            row[columns[ngram]] = count
    return counts
