"""Metrics of generated texts, and their choice by name."""

from sacrebleu.metrics import BLEU, CHRF

from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.rouge import rouge_1, rouge_2, rouge_l
from kseq.evaluation.score import Score, check_lengths, listed, streams
from kseq.user_error import ArgumentError


def bleu(outputs, references):
    """BLEU of detokenized outputs against one or more references each.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several, whose number may
            differ.

    Returns:
        Score, 0 to 100, printed with sacreBLEU's signature.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> bleu(["a rose is a rose"], ["a rose is a rose"]).text[:12]
        'BLEU 100.00 '

    Reference:
        Papineni et al. 2002, aclanthology.org/P02-1040; Post 2018,
        arXiv:1804.08771.
    """
    check_lengths(outputs, references)
    metric = BLEU(force=True)  # only silences advice about tokenized text
    value = metric.corpus_score(outputs, streams(references)).score
    return Score(value, f"BLEU {value:.2f}  {metric.get_signature()}")


def chrf(outputs, references):
    """ChrF of detokenized outputs against one or more references each.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several, whose number may
            differ.

    Returns:
        Score, 0 to 100, printed with sacreBLEU's signature.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> chrf(["a rose is a rose"], ["a rose is a rose"]).text[:12]
        'chrF 100.00 '

    Reference:
        Popovic 2015, aclanthology.org/W15-3049.
    """
    check_lengths(outputs, references)
    metric = CHRF()
    value = metric.corpus_score(outputs, streams(references)).score
    return Score(value, f"chrF {value:.2f}  {metric.get_signature()}")


def exact_match(outputs, references):
    """The fraction of the outputs that equal one of their references.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several.

    Returns:
        Score, 0 to 1, printed in percent.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> exact_match(["a", "b"], ["a", "c"]).text
        'exact match 50.00 %'
    """
    check_lengths(outputs, references)
    pairs = zip(outputs, listed(references), strict=True)
    value = sum(output in right for output, right in pairs) / len(outputs)
    return Score(value, f"exact match {100 * value:.2f} %")


def distinct_1(outputs, references):
    """Distinct-1: the fraction of different words among all words.

    Words are separated by white space. It falls with the number of outputs:
    compare it on the same number of them.

    Args:
        outputs: list of str.
        references: list of the same length, ignored.

    Returns:
        Score, 0 to 1, printed in percent.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> distinct_1(["no no", "yes no"], ["", ""]).text
        'distinct-1 50.00 %'

    Reference:
        Li et al. 2016, arXiv:1510.03055, section 4.3.
    """
    return _distinct(1, outputs, references)


def distinct_2(outputs, references):
    """Distinct-2, the same of pairs of neighbouring words.

    Example:
        >>> distinct_2(["no no no", "yes no"], ["", ""]).text
        'distinct-2 66.67 %'
    """
    return _distinct(2, outputs, references)


def _distinct(size, outputs, references):
    check_lengths(outputs, references)
    ngrams = [
        tuple(words[start : start + size])
        for words in map(str.split, outputs)
        for start in range(len(words) - size + 1)
    ]
    value = len(set(ngrams)) / max(len(ngrams), 1)
    return Score(value, f"distinct-{size} {100 * value:.2f} %")


_ERRORS = (cer, wer)  # less is better
_METRICS = (
    *(bleu, chrf, exact_match, *_ERRORS),
    *(rouge_1, rouge_2, rouge_l, distinct_1, distinct_2),
)


def metrics_named(names):
    """The metrics that the option `--metrics` names.

    Args:
        names: sequence of str, see `kseq.command_line.option_types.Metric`.

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
