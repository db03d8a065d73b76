"""ROUGE: the words of a summary that are in a reference."""

import functools
import re
import unicodedata
from collections import Counter

from kseq.evaluation.score import Score, check_lengths, listed

_ASCII_WORD = re.compile(r"[a-z0-9]+")


def rouge_1(outputs, references):
    """ROUGE-1 of summaries against one or more references each.

        P = common / words of the output
        R = common / words of the reference
        F = 2 P R / (P + R)

    A word that occurs several times is common as often as both texts have it.
    Words are runs of letters, their marks and digits, in lower case, and are
    not stemmed. Of several references the one with the highest F counts.

    `metrics_named` also has the three of stemmed words, as the package
    rouge-score 0.1.2 computes them with `use_stemmer`: `rouge_1_stem`,
    `rouge_2_stem`, `rouge_l_stem`. Words are runs of the letters a to z and
    digits there; those of more than three are stemmed by NLTK's stemmer for
    English, after Porter 1980. The extra `rouge` installs it.

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
    return _rouge("1", _words, outputs, references)


def rouge_2(outputs, references):
    """ROUGE-2, the same of pairs of neighbouring words.

    Example:
        >>> rouge_2(["A rose is red."], ["a rose is a rose"]).text[:13]
        'ROUGE-2 57.14'
    """
    return _rouge("2", _words, outputs, references)


def rouge_l(outputs, references):
    """ROUGE-L, the same of the longest common subsequence of words.

    Example:
        >>> rouge_l(["Red is a rose."], ["a rose is a rose"]).text[:13]
        'ROUGE-L 66.67'
    """
    return _rouge("L", _words, outputs, references)


def _stemmed(name):
    """The metric of stemmed words, as a function."""

    def metric(outputs, references):
        return _rouge(name, _stemmed_words, outputs, references)

    metric.__name__ = metric.__qualname__ = f"rouge_{name.lower()}_stem"
    return metric


def _rouge(name, words_of, outputs, references):
    check_lengths(outputs, references)
    counts, value = _COUNTS[name], 0.0
    for output, right in zip(outputs, listed(references), strict=True):
        words = words_of(output)
        value += max(_f_score(*counts(words, words_of(text))) for text in right)
    value *= 100 / len(outputs)
    return Score(value, f"ROUGE-{name} {value:.2f}  {_SIGNATURES[words_of]}")


class _Separators(dict):
    """A space for each character that is in no word, for `str.translate`."""

    def __missing__(self, code):
        character = chr(code)
        # Marks are vowels in the scripts of India.
        is_mark = unicodedata.category(character).startswith("M")
        in_word = is_mark or character.isalnum()
        return self.setdefault(code, character if in_word else " ")


_SEPARATORS = _Separators()


def _words(text):
    return text.lower().translate(_SEPARATORS).split()


def _stemmed_words(text):
    stem = _stem()
    words = _ASCII_WORD.findall(text.lower())
    return [stem(word) if len(word) > 3 else word for word in words]


@functools.cache
def _stem():
    from nltk.stem.porter import PorterStemmer  # slow, and an extra

    return functools.lru_cache(maxsize=100_000)(PorterStemmer().stem)


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


_COUNTS = {
    "1": _common_ngrams(1),
    "2": _common_ngrams(2),
    "L": _common_subsequence,
}
_SIGNATURES = {
    _words: "F|refs:max|case:lower|stem:no",
    _stemmed_words: "F|refs:max|case:lower|tok:ascii|stem:porter",
}
STEMMED_ROUGE = tuple(_stemmed(name) for name in _COUNTS)
# Metric -> how it is printed, and its signature.
ROUGE = {
    metric: (f"ROUGE-{name}", _SIGNATURES[words_of])
    for words_of, metrics in (
        (_words, (rouge_1, rouge_2, rouge_l)),
        (_stemmed_words, STEMMED_ROUGE),
    )
    for name, metric in zip(_COUNTS, metrics, strict=True)
}
