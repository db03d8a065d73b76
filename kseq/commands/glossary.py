"""A glossary: words that answers must or must not contain."""

import math
import re

from kseq.data import DataError, read_lines
from kseq.decoding.phrases import is_letter

_FORBIDDEN = "!"


class Glossary:
    """The phrases of a glossary that matter for a line of input.

    A row has a phrase of the source, a tab and its translation. If a line has
    the phrase, as whole words, its answer must contain the translation. With a
    third column "!" it must not contain it; without a translation it must not
    contain the phrase itself. A row without a phrase of the source is about
    every line.

    Args:
        path: of a file of UTF-8 text.

    Raises:
        DataError: if a row has no phrase, or other columns.
    """

    def __init__(self, path):
        self._rows = []
        for line in read_lines(path):
            text = line.text.decode("utf-8", "replace")
            if text.strip():
                self._rows.append(_row(text, line))

    def phrases(self, line):
        """What the answer to a line must and must not contain.

        Args:
            line: bytes.

        Returns:
            two lists of str.
        """
        text = line.decode("utf-8", "replace")
        required, forbidden = {}, {}
        for source, target, is_forbidden in self._rows:
            if _contains(text, source):
                (forbidden if is_forbidden else required)[target] = True
        return list(required), list(forbidden)

    def fits(self, line, answer):
        """Whether an `Answer` to a line has what it must, nothing forbidden.

        A blank answer to a blank line does.
        """
        text, score = answer.hypotheses[0]
        if (text, score) == ("", 0.0):
            return True
        required, forbidden = self.phrases(line)
        has_all = all(_contains(text, phrase) for phrase in required)
        has_other = any(_contains(text, phrase) for phrase in forbidden)
        return score > -math.inf and has_all and not has_other


def _row(text, where):
    source, *others = (column.strip() for column in text.split("\t"))
    target, mark = ([*others, "", ""])[:2]
    if not others or len(others) > 2 or mark not in ("", _FORBIDDEN):
        raise DataError(
            f"{where}: expected a phrase of the source, a tab and its "
            f'translation, and perhaps a tab and "!"; found {text[:80]!r}.'
        )
    if not (source or target):
        raise DataError(f"{where}: both phrases are empty.")
    return source, target or source, bool(mark) or not target


def _contains(text, phrase):
    """Whether a text has a phrase as whole words."""
    return any(
        _is_edge(text, found.start())
        and _is_edge(text, found.start() + len(phrase))
        for found in re.finditer(f"(?={re.escape(phrase)})", text)
    )


def _is_edge(text, place):
    """Whether there is no letter on both sides of a place."""
    around = text[max(place - 1, 0) : place + 1]
    return len(around) < 2 or not all(map(is_letter, around))
