"""ROUGE: the words of a summary that are in a reference."""

import re
from collections import Counter

from kseq.evaluation.score import Score, check_lengths, listed

_WORD = re.compile(r"[^\W_]+")


def rouge_1(outputs, references):
    """ROUGE-1 of summaries against one or more references each.

        P = common / words of the output
        R = common / words of the reference
        F = 2 P R / (P + R)

    A word that occurs several times is common as often as both texts have it.
    Words are runs of letters and digits, in lower case, and are not stemmed.
    Of several references the one with the highest F counts.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several, whose number may
            differ.

    Returns:
        Score, the mean F of the outputs, 0 to 100, with a signature.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> rouge_1(["A rose is red."], ["a rose is a rose"]).text
        'ROUGE-1 66.67  F|refs:max|case:lower|stem:no'

    Reference:
        Lin 2004, aclanthology.org/W04-1013.
    """
    return _rouge("1", _common_ngrams(1), outputs, references)


def rouge_2(outputs, references):
    """ROUGE-2, the same of pairs of neighbouring words.

    Example:
        >>> rouge_2(["A rose is red."], ["a rose is a rose"]).text[:13]
        'ROUGE-2 57.14'
    """
    return _rouge("2", _common_ngrams(2), outputs, references)


def rouge_l(outputs, references):
    """ROUGE-L, the same of the longest common subsequence of words.

    Example:
        >>> rouge_l(["Red is a rose."], ["a rose is a rose"]).text[:13]
        'ROUGE-L 66.67'
    """
    return _rouge("L", _common_subsequence, outputs, references)


def _rouge(name, counts, outputs, references):
    check_lengths(outputs, references)
    value = 0.0
    for output, right in zip(outputs, listed(references), strict=True):
        words = _words(output)
        value += max(_f_score(*counts(words, _words(text))) for text in right)
    value *= 100 / len(outputs)
    signature = "F|refs:max|case:lower|stem:no"
    return Score(value, f"ROUGE-{name} {value:.2f}  {signature}")


def _words(text):
    return _WORD.findall(text.lower())


def _f_score(common, size, other_size):
    """F of what two texts have in common; 2 P R / (P + R), simplified."""
    return 2 * common / (size + other_size) if common else 0.0


def _common_ngrams(size):
    def counts(words, others):
        one, other = _ngrams(words, size), _ngrams(others, size)
        return (one & other).total(), one.total(), other.total()

    return counts


def _ngrams(words, size):
    return Counter(zip(*(words[start:] for start in range(size)), strict=False))


def _common_subsequence(words, others):
    """The length of the longest common subsequence, in bits of an integer.

    A bit of `open_` is 0 where the subsequence grows, see Hyyro 2004, "Bit-
    parallel LCS-length computation revisited".
    """
    positions = Counter()
    for position, word in enumerate(words):
        positions[word] |= 1 << position
    every = open_ = (1 << len(words)) - 1
    for word in others:
        found = open_ & positions[word]
        open_ = ((open_ + found) | (open_ - found)) & every
    return len(words) - open_.bit_count(), len(words), len(others)
