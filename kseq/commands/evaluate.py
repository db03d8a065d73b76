"""kseq evaluate: answers to a file, judged by its references or labels."""

import sys
import time

from kseq.commands.abilities import abilities
from kseq.commands.open_predictor import open_predictor
from kseq.evaluation import check_files, evaluation_of_files

_PAUSE = 5  # seconds between two signs of progress


def run(options):
    """Prints the scores of a model on a file."""
    files = options.source, options.reference, options.columns
    check_files(abilities(options.path).has_labels, *files)
    evaluation = evaluation_of_files(open_predictor(options), *files)
    evaluation.scores(progress=_Progress())
    for line in evaluation.report():
        print(line)


class _Progress:
    """Tells how many lines are done, now and then, and at the end."""

    def __init__(self):
        self._last = time.monotonic()

    def __call__(self, done, count):
        if done < count and time.monotonic() - self._last < _PAUSE:
            return
        self._last = time.monotonic()
        print(f"{done} of {count} lines", file=sys.stderr)
