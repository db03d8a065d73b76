"""Metrics of generated texts, chosen by their names."""

from kseq.evaluation.bleu import bleu
from kseq.evaluation.chrf import chrf
from kseq.evaluation.distinct import distinct_1, distinct_2
from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.rouge import rouge_1, rouge_2, rouge_l
from kseq.user_error import ArgumentError

_ERRORS = (cer, wer)  # less is better
_METRICS = (
    *(bleu, chrf, exact_match, *_ERRORS),
    *(rouge_1, rouge_2, rouge_l, distinct_1, distinct_2),
)


def metrics_named(names):
    """The metrics that the option `--metrics` names.

    Args:
        names: sequence of str, see `kseq.option_types.Metric`.

    Returns:
        A list of functions of outputs and references, see `Score`.

    Raises:
        ValueError: if there is no name, or no metric of that name.

    Example:
        >>> [metric.__name__ for metric in metrics_named(["rouge_l", "wer"])]
        ['rouge_l', 'wer']
    """
    metrics = {metric.__name__: metric for metric in _METRICS}
    if not names or not metrics.keys() >= set(names):
        raise ArgumentError(
            f"metrics must be some of {', '.join(metrics)}. "
            f"Received: {' '.join(names) or 'none'}"
        )
    return [metrics[name] for name in names]


def monitored(names):
    """What chooses the best weights: the first metric, in validation.

    Args:
        names: see `metrics_named`.

    Returns:
        A dict, `monitor` and `mode` of `kseq.training.Checkpoints`. Of error
        rates the lowest is the best, of other metrics the highest.

    Example:
        >>> monitored(["wer", "exact_match"])
        {'monitor': 'val_wer', 'mode': 'min'}
    """
    first = metrics_named(names)[0]
    mode = "min" if first in _ERRORS else "max"
    return {"monitor": f"val_{first.__name__}", "mode": mode}
