"""Metrics as functions of sums over lines, for resampling."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kseq.evaluation.classification_scores import accuracy
from kseq.evaluation.comet import Comet
from kseq.evaluation.error_rates import (
    cer,
    character_errors,
    wer,
    word_errors,
)
from kseq.evaluation.metrics import (
    exact_match,
    is_error_rate,
    sacrebleu_metric,
    score_of_sacrebleu,
)
from kseq.evaluation.rouge import ROUGE
from kseq.evaluation.score import check_lengths, listed, streams
from kseq.user_error import ArgumentError


class LineStatistics(NamedTuple):
    """What the value of a metric is computed of, line by line.

    Args:
        label: str, the name of the metric as it is printed.
        rows: (N, S) float64, for N lines.
        value: function of the sum of rows, (S,); gives the value, a float
            from 0 to 100 or, of error rates, more.
        less_is_better: bool.
        signature: str, how it is computed, as sacreBLEU writes it; may be "".
    """

    label: str
    rows: np.ndarray
    value: Callable[[np.ndarray], float]
    less_is_better: bool
    signature: str

    def total(self, places=slice(None)):
        """The value of all lines, or of those at `places`."""
        return self.value(self.rows[places].sum(axis=0))


def line_statistics(metric, outputs, references):
    """The statistics of each line in a metric.

    Args:
        metric: a function of `metrics_named`. Distinct-1 and distinct-2 count
            each word once over all lines, and are no sums.
        outputs: list of str.
        references: list of str, or of lists of several.

    Returns:
        `LineStatistics`.

    Raises:
        ValueError: if the lists are empty or differ in length.
        ArgumentError: if the metric is not computed of sums over lines.

    Example:
        >>> from kseq.evaluation import wer
        >>> found = line_statistics(wer, ["a rise", "yes"], ["a rose", "yes"])
        >>> found.rows, round(found.total(), 2)
        (array([[1., 2.],
               [0., 1.]]), 33.33)
    """
    check_lengths(outputs, references)
    if by_sacrebleu := sacrebleu_metric(metric):
        computed, label = by_sacrebleu
        # sacreBLEU has no public function for them.
        rows = computed._extract_corpus_statistics(outputs, streams(references))
        value, signature = _of_sacrebleu(computed), computed.get_signature()
    elif isinstance(metric, Comet):
        label, signature, value = metric.label, metric.signature, _mean
        rows = [(each, 1) for each in metric.of_lines(outputs, references)]
    elif metric in _RATES:
        label, count, signature = _RATES[metric]
        rows = list(map(count, outputs, listed(references)))
        value = _percentage
    else:
        raise ArgumentError(
            f"{metric.__name__} depends on all lines at once, and cannot be "
            "resampled."
        )
    return LineStatistics(
        label=label,
        rows=np.array(rows, dtype="float64"),
        value=value,
        less_is_better=is_error_rate(metric),
        signature=str(signature),
    )


def scores_and_statistics(metrics, outputs, references):
    """Scores, and the statistics that sacreBLEU computes them of.

    Those take most of the time of a score: `with_intervals` uses them again.

    Args:
        metrics: functions of outputs and references, see `Score`.
        outputs: list of str.
        references: list of str, or of lists of several.

    Returns:
        A dict, name of each metric -> its `Score`; and a dict, metric ->
        `LineStatistics`, of the metrics of sacreBLEU.
    """
    scores, statistics = {}, {}
    for metric in metrics:
        if sacrebleu_metric(metric) is None:
            score = metric(outputs, references)
        else:
            found = line_statistics(metric, outputs, references)
            statistics[metric] = found
            score = score_of_sacrebleu(
                found.label, found.total(), found.signature
            )
        scores[metric.__name__] = score
    return scores, statistics


def has_line_statistics(metric):
    """Whether a metric is one of kseq that is computed of sums over lines.

    Args:
        metric: function of outputs and references.
    """
    if isinstance(metric, Comet) or metric in _RATES:
        return True
    return sacrebleu_metric(metric) is not None


def _of_sacrebleu(computed):
    def value(sums):
        return float(computed._compute_score_from_stats(sums).score)

    return value


def _mean(sums):
    return float(sums[0] / sums[1])


def _percentage(sums):
    above, below = sums
    if not below:
        return 100.0 if above else 0.0
    return 100 * float(above / below)


def _of_line(metric, largest, output, references):
    """Of a metric that is a mean over lines."""
    return metric([output], [references]).value / largest, 1


# Metric -> how it is printed; a function of an output and of its references
# that gives a numerator and a denominator; and its signature.
_RATES = {
    metric: (label, functools.partial(_of_line, metric, 1), "")
    for label, metric in (
        ("accuracy", accuracy),
        ("exact match", exact_match),
    )
}
_RATES |= {cer: ("CER", character_errors, ""), wer: ("WER", word_errors, "")}
_RATES |= {
    metric: (label, functools.partial(_of_line, metric, 100), signature)
    for metric, (label, signature) in ROUGE.items()
}
