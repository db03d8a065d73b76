"""Confidence intervals and paired tests by resampling of lines.

Draws, intervals and tests are those of sacreBLEU with its default seed, for
all metrics that are computed of sums over lines, see `line_statistics`, in
bounded memory.
"""

import re

import numpy as np

from kseq.evaluation.line_statistics import (
    has_line_statistics,
    line_statistics,
)
from kseq.terminal import progress

SEED = 12345  # the default of sacreBLEU, as are the next two
RESAMPLES = 1000  # of the bootstrap
TRIALS = 10_000  # of approximate randomization
_CELLS = 4_000_000  # draws at once
_VALUE = re.compile(r"[0-9]+\.[0-9]+")  # of a score, as it is printed
_TIE = 1e-9  # differences that are equal but for rounding


def with_intervals(scores, metrics, outputs, references, statistics=None):
    """Scores as they are printed, with 95 % confidence intervals.

    An interval of zero width, when all lines are right or all are wrong, is
    left out, because the bootstrap cannot estimate it. So are the intervals of
    metrics that cannot be resampled.

    Args:
        scores: list of `Score`, one for each metric.
        metrics: list of functions of outputs and references.
        outputs: list of str.
        references: list of str, or of lists of several.
        statistics: dict, metric -> `LineStatistics`, those that are known, see
            `scores_and_statistics`; or None.

    Returns:
        A list of str.

    Example:
        >>> from kseq.evaluation import exact_match
        >>> data = ["a", "b", "c", "d"], ["a", "b", "c", "x"]
        >>> with_intervals([exact_match(*data)], [exact_match], *data)
        ['exact match 75.00 ± 37.50 %  bs:1000|seed:12345']
    """
    known = statistics or {}
    systems = {
        number: known.get(metric)
        or line_statistics(metric, outputs, references)
        for number, metric in enumerate(metrics)
        if has_line_statistics(metric)
    }
    texts = [score.text for score in scores]
    if not systems:
        return texts
    with progress("Resampling", RESAMPLES, "resamples") as advance:
        resampled = bootstrap(list(systems.values()), advance)
    for number, values in zip(systems, resampled, strict=True):
        if (width := half_width(values)) > _TIE:
            text, _, signature = texts[number].partition("  ")
            text = _VALUE.sub(rf"\g<0> ± {width:.2f}", text, count=1)
            how = f"bs:{RESAMPLES}|seed:{SEED}|{signature}".strip("|")
            texts[number] = f"{text}  {how}"
    return texts


def bootstrap(systems, progress=None):
    """The values of systems for resamples of the lines, drawn with replacement.

    Args:
        systems: list of `LineStatistics` of the same N lines, of any metrics.
        progress: callable of the number of resamples done since its last
            call; or None.

    Returns:
        (len(systems), 1000) float64. All have the same resamples.

    Reference:
        Koehn 2004, aclanthology.org/W04-3250.
    """
    lines = len(systems[0].rows)
    rng = np.random.default_rng(SEED)
    values = [[] for _ in systems]
    for count in _blocks(RESAMPLES, lines):
        drawn = rng.choice(lines, size=(count, lines), replace=True)
        drawn += np.arange(count)[:, None] * lines
        times = np.bincount(drawn.ravel(), minlength=count * lines)
        times = times.reshape(count, lines).astype(float)
        for found, system in zip(values, systems, strict=True):
            found += map(system.value, times @ system.rows)
        if progress is not None:
            progress(count)
    return np.array(values)


def half_width(values):
    """Half the width of the 95 % confidence interval of resampled values."""
    low, high = interval(values)
    return (high - low) / 2


def interval(values):
    """The 95 % confidence interval of resampled values: (float, float)."""
    values = np.sort(values)
    outside = len(values) // 40
    return float(values[outside]), float(values[-1 - outside])


def randomized_differences(first, second, progress=None):
    """Differences of two systems whose answers are exchanged at random.

    Each line is exchanged with probability one half.

    Args:
        first: list of `LineStatistics`, one for each metric.
        second: list of those of the other system for the same N lines.
        progress: see `bootstrap`.

    Returns:
        (metrics, 10000) float64, second - first.

    Reference:
        Riezler and Maxwell 2005, aclanthology.org/W05-0908.
    """
    lines = len(first[0].rows)
    rng = np.random.default_rng(SEED)
    differences = [[] for _ in first]
    # The generator draws 32 bits at once: none may be lost between blocks.
    for count in _blocks(TRIALS, lines, multiple=32):
        exchanged = 1.0 - rng.integers(2, size=(count, lines), dtype=bool)
        for found, one, other in zip(differences, first, second, strict=True):
            moved = exchanged @ (other.rows - one.rows)
            sums = one.rows.sum(axis=0) + moved, other.rows.sum(axis=0) - moved
            found += [
                one.value(right) - one.value(left)
                for left, right in zip(*sums, strict=True)
            ]
        if progress is not None:
            progress(count)
    return np.array(differences)


def bootstrap_p_value(differences, observed):
    """The two-sided p-value of paired bootstrap resampling.

    sacreBLEU counts the resamples with a larger difference only. Here those
    with an equal one count as well: they are many for metrics with few
    values, and two equal systems have p = 1.

    Args:
        differences: (1000,) array, of the resamples.
        observed: float, the difference of the systems.
    """
    sizes = np.abs(differences)
    return _p_value(sizes - sizes.mean(), observed)


def randomization_p_value(differences, observed):
    """The two-sided p-value of approximate randomization.

    Equal differences count, see `bootstrap_p_value`.

    Args:
        differences: (10000,) array, see `randomized_differences`.
        observed: float, the difference of the systems.
    """
    return _p_value(np.abs(differences), observed)


def _p_value(sizes, observed):
    count = int(np.sum(sizes >= abs(observed) - _TIE))
    return (count + 1) / (len(sizes) + 1)


def _blocks(total, lines, multiple=1):
    """Numbers of draws that fit in memory, which sum to `total`."""
    size = max(_CELLS // lines // multiple, 1) * multiple
    while total > 0:
        yield min(size, total)
        total -= size
