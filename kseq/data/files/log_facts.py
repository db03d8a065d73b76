"""Logging of the facts and problems of a corpus."""

from kseq.one_line import escaped_line


def log_facts(log, corpus):
    """Logs the facts of a corpus; its problems are warnings."""
    for line in corpus.facts:
        log.info(escaped_line(line))
    for line in corpus.problems:
        log.warning(escaped_line(line))
