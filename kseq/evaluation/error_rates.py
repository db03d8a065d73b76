"""Errors of transcripts, as jiwer counts them."""

import jiwer

from kseq.evaluation.score import Score, check_lengths, listed


def cer(outputs, references):
    """The character error rate: insertions, deletions and substitutions.

    Of several references the one with the fewest errors counts.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several, whose number may
            differ.

    Returns:
        Score, 0 or more, a fraction of the characters of the references,
        printed in percent. Less is better.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> cer(["a rise"], ["a rose"]).text
        'CER 16.67 %'
    """
    return _rate(
        "CER", jiwer.cer, jiwer.process_characters, outputs, references
    )


def wer(outputs, references):
    """The word error rate; the rest as in `cer`.

    Example:
        >>> wer(["a rise"], ["a rose"]).text
        'WER 50.00 %'
        >>> wer(["a rise"], [["a rose", "one rise is"]]).text
        'WER 50.00 %'
    """
    return _rate("WER", jiwer.wer, jiwer.process_words, outputs, references)


def _rate(name, count, process, outputs, references):
    check_lengths(outputs, references)
    nearest = [
        _nearest(process, output, several)
        for output, several in zip(outputs, listed(references), strict=True)
    ]
    if not any(reference.strip() for reference in nearest):
        value = float(any(output.strip() for output in outputs))
    else:
        value = count(nearest, list(outputs))
    return Score(value, f"{name} {100 * value:.2f} %")


def _nearest(process, output, references):
    """The reference with the fewest errors."""
    if len(references) == 1:
        return references[0]

    def errors(reference):
        # With a word that both have: jiwer refuses an empty reference.
        found = process(f"{reference} .", f"{output} .")
        return found.substitutions + found.insertions + found.deletions

    return min(references, key=errors)
