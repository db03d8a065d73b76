"""chrF, as sacreBLEU computes it."""

from sacrebleu.metrics import CHRF

from kseq.evaluation.score import Score, check_lengths, streams


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
