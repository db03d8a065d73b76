"""What the corpora of all kinds share: facts, problems and arguments."""

import logging

from kseq.data.files.data_error import DataError
from kseq.terminal import escaped_line

_log = logging.getLogger(__name__)


def reading_problems(name, kept, left_out, invalid=0):
    """One line per problem: what is left out by reason, and invalid lines.

    Example:
        >>> reading_problems("a.tsv", (8, "documents"), {"blank": 2})
        ['a.tsv: 2 of 10 documents are left out: 2 blank.']
    """
    lines = []
    number, plural = kept
    if total := sum(left_out.values()):
        reasons = ", ".join(f"{n} {reason}" for reason, n in left_out.items())
        lines.append(
            f"{name}: {total} of {number + total} {plural} are left out: "
            f"{reasons}."
        )
    if invalid:
        lines.append(
            f"{name}: {invalid} lines are not valid UTF-8; invalid bytes "
            "become U+FFFD."
        )
    return lines


def facts_and_problems(corpus) -> list[str]:
    """All facts and problems, one per line."""
    return [escaped_line(line) for line in corpus.facts + corpus.problems]


def logged(corpus, log: bool):
    """The corpus. If `log`, facts are logged, and problems as warnings."""
    if log:
        for line in corpus.facts:
            _log.info(escaped_line(line))
        for line in corpus.problems:
            _log.warning(escaped_line(line))
    return corpus


def refuse_without_train(*, validation, **given):
    """Raises DataError for arguments that are given without `train`.

    An empty path is one: that of a shell variable which is not set.
    """
    given["validation"] = validation or validation == ""
    for name, value in given.items():
        if value:
            raise DataError(f"{name} needs train.")


def refuse_unknown(problem: str, train, known, validation, found):
    """Raises DataError for labels or tags that only validation has.

    Args:
        problem: "has labels that" or "has tags that", for the message.
        train: path of the training file.
        known: those of the training file.
        validation: path of the validation file.
        found: those of the validation file.
    """
    if unknown := sorted(set(found) - set(known)):
        raise DataError(
            f"{validation} {problem} {train} does not have: {some(unknown)}"
        )


def some(names) -> str:
    """The first five of some names, for a message."""
    return ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
