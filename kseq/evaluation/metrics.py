"""Metrics of generated texts, and their choice by name."""

import functools

from sacrebleu.metrics import BLEU, CHRF, TER

from kseq.evaluation.comet import comet
from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.rouge import ROUGE
from kseq.evaluation.score import Score, check_lengths, listed, streams
from kseq.files.optional_packages import check_metrics
from kseq.user_error import ArgumentError


def bleu(outputs, references):
    """BLEU of detokenized outputs against one or more references each.

    `metrics_named` also has it with other tokenizers of sacreBLEU, for
    languages without spaces between words and for those that its default, 13a,
    does not suit: `bleu_char`, `bleu_intl`, `bleu_zh`, `bleu_ja`, `bleu_ko`.

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
    return _of_sacrebleu("bleu", outputs, references)


def chrf(outputs, references):
    """ChrF of detokenized outputs against one or more references each.

    `metrics_named` also has chrF++, with unigrams and bigrams of words, as
    `chrf_plus_plus`.

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
        Popovic 2015, aclanthology.org/W15-3049; chrF++: Popovic 2017,
        aclanthology.org/W17-4770.
    """
    return _of_sacrebleu("chrf", outputs, references)


def ter(outputs, references):
    """TER: edits, with shifts of phrases, per word of the references.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several, whose number may
            differ.

    Returns:
        Score, 0 or more, printed with sacreBLEU's signature. Less is better.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> ter(["rose a"], ["a rose"]).text[:10]
        'TER 50.00 '

    Reference:
        Snover et al. 2006, aclanthology.org/2006.amta-papers.25.
    """
    return _of_sacrebleu("ter", outputs, references)


# Name -> how it is printed, and the metric; `force` only silences advice about
# tokenized text.
_BY_SACREBLEU = {
    "bleu": ("BLEU", functools.partial(BLEU, force=True)),
    "chrf": ("chrF", CHRF),
    "chrf_plus_plus": ("chrF++", functools.partial(CHRF, word_order=2)),
    "ter": ("TER", TER),
} | {
    f"bleu_{language}": (
        "BLEU",
        functools.partial(BLEU, tokenize=tokenizer, force=True),
    )
    for language, tokenizer in (
        *(("char", "char"), ("intl", "intl"), ("zh", "zh")),
        *(("ja", "ja-mecab"), ("ko", "ko-mecab")),
    )
}


def sacrebleu_metric(metric):
    """How sacreBLEU computes a metric of this module; None if it does not.

    Args:
        metric: function of outputs and references.

    Returns:
        A new `sacrebleu.metrics.Metric`, and its name as it is printed.

    Raises:
        UserError: if a package is missing that its tokenizer needs.
    """
    if metric not in _OF_SACREBLEU:
        return None
    return _made(metric.__name__)


def _made(name):
    check_metrics([name])
    label, make = _BY_SACREBLEU[name]
    return make(), label


def _of_sacrebleu(name, outputs, references):
    check_lengths(outputs, references)
    metric, label = _made(name)
    value = metric.corpus_score(list(outputs), streams(references)).score
    return score_of_sacrebleu(label, value, metric.get_signature())


def score_of_sacrebleu(label, value, signature):
    """A `Score` as sacreBLEU prints it."""
    return Score(value, f"{label} {value:.2f}  {signature}")


def _named(name):
    """The metric of sacreBLEU that has this name, as a function."""

    def metric(outputs, references):
        return _of_sacrebleu(name, outputs, references)

    metric.__name__ = metric.__qualname__ = name
    return metric


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


_ERRORS = (cer, wer, ter)  # less is better
_OF_SACREBLEU = (
    *(bleu, chrf, ter),
    *(_named(name) for name in _BY_SACREBLEU if "_" in name),
)
_METRICS = (
    *(*_OF_SACREBLEU, comet, exact_match, cer, wer),
    *(*ROUGE, distinct_1, distinct_2),
)


def metrics_named(names):
    """The metrics that the option `--metrics` names.

    Args:
        names: sequence of str, see `kseq.command_line.option_types.Metric`;
            one that is repeated counts once.

    Returns:
        A list of functions of outputs and references, see `Score`.

    Raises:
        ValueError: if there is no name, or no metric of that name.
        UserError: if a package or program is missing that one of them needs.

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
    check_metrics(names)
    return [metrics[name] for name in dict.fromkeys(names)]


def is_error_rate(metric):
    """Whether less is better in a metric, a function."""
    return metric in _ERRORS


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
    mode = "min" if is_error_rate(first) else "max"
    return {"monitor": f"val_{first.__name__}", "mode": mode}
