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
    return _rate("CER", character_errors, outputs, references)


def wer(outputs, references):
    """The word error rate; the rest as in `cer`.

    Example:
        >>> wer(["a rise"], ["a rose"]).text
        'WER 50.00 %'
        >>> wer(["a rise"], [["a rose", "one rise is"]]).text
        'WER 50.00 %'
    """
    return _rate("WER", word_errors, outputs, references)


def character_errors(output, references):
    """Errors, and characters of the reference that has the fewest errors.

    Args:
        output: str.
        references: list of str.

    Returns:
        (int, int).
    """
    return _errors(jiwer.process_characters, str.strip, output, references)


def word_errors(output, references):
    """The same in words."""
    return _errors(jiwer.process_words, str.split, output, references)


def _rate(name, count, outputs, references):
    check_lengths(outputs, references)
    found = map(count, outputs, listed(references))
    errors, length = map(sum, zip(*found, strict=True))
    value = errors / length if length else float(errors > 0)
    return Score(value, f"{name} {100 * value:.2f} %")


def _errors(process, split, output, references):
    return min(
        (_counts(process, split, output, text) for text in references),
        key=lambda found: found[0],
    )


def _counts(process, split, output, reference):
    if not reference.strip():  # jiwer refuses it
        return len(split(output)), 0
    found = process(reference, output)
    wrong = found.substitutions + found.deletions
    return wrong + found.insertions, wrong + found.hits
