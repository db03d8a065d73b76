"""Diversity of generated answers."""

from kseq.evaluation.score import Score, check_lengths


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
