"""What the corpora of all kinds share: facts, problems and arguments."""

import logging
from collections.abc import Iterable

from kseq.data.files.data_error import DataError
from kseq.terminal import escaped_line

_log = logging.getLogger(__name__)


def facts_and_problems(corpus) -> list[str]:
    """All facts and problems, one per line."""
    return [escaped_line(line) for line in corpus.facts + corpus.problems]


def logged(corpus, log: bool):
    """The corpus. If `log`, facts are logged, and problems as warnings."""
    if log:
        for line in corpus.facts:
            _log.info(escaped_line(line))
        log_problems(corpus.problems)
    return corpus


def log_problems(problems: Iterable[str]):
    """Logs warnings, one per line, whatever the names of files contain."""
    for line in problems:
        _log.warning(escaped_line(line))


def refuse_without_train(**given):
    """Raises DataError for arguments that are given without `train`."""
    _refuse(given, "{} needs train.")


def refuse_prepared(**given):
    """Raises DataError for arguments that a prepared folder has already."""
    _refuse(given, "{} is part of a prepared folder: leave it out.")


def _refuse(given, message):
    for name, value in given.items():
        # An empty path is that of a shell variable which is not set.
        if value or (name == "validation" and value == ""):
            raise DataError(message.format(name))


def refuse_unknown(what: str, rows, validation):
    """Raises DataError for labels or tags that only validation has.

    Args:
        what: "labels" or "tags", for the message.
        rows: `Rows` of training.
        validation: `Rows` of validation.
    """
    if unknown := sorted({*validation.labels} - {*rows.labels}):
        raise DataError(
            f"{validation.path} has {what} that {rows.path} does not have: "
            f"{some(unknown)}"
        )


def some(names) -> str:
    """The first five of some names, for a message."""
    return ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)


def single_labels(rows, kind: str) -> list[str]:
    """A line about labels, or tags, of which `Rows` have one, or no line."""
    if not rows.single:
        return []
    return [
        f"{rows.path}: {kind} that occur only once: {some(rows.single)}. If "
        "one is a column name, name the columns with --columns, or delete its "
        "row."
    ]
