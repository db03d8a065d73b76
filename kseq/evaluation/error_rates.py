"""Errors of transcripts, as jiwer counts them."""

import jiwer

from kseq.evaluation.score import Score, check_lengths


def cer(outputs, references):
    """The character error rate: insertions, deletions and substitutions.

    Args:
        outputs: list of str.
        references: list of str.

    Returns:
        Score, 0 or more, a fraction of the characters of the references,
        printed in percent. Less is better.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> cer(["a rise"], ["a rose"]).text
        'CER 16.67 %'
    """
    return _rate(jiwer.cer, "CER", outputs, references)


def wer(outputs, references):
    """The word error rate; the rest as in `cer`.

    Example:
        >>> wer(["a rise"], ["a rose"]).text
        'WER 50.00 %'
    """
    return _rate(jiwer.wer, "WER", outputs, references)


def _rate(count, name, outputs, references):
    check_lengths(outputs, references)
    if not any(reference.strip() for reference in references):
        value = float(any(output.strip() for output in outputs))
    else:
        value = count(list(references), list(outputs))
    return Score(value, f"{name} {100 * value:.2f} %")
