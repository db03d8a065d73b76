"""kseq average: the mean of the last checkpoints of a run."""

from kseq.runs import RunDirectory, save_average


def run(options):
    """Prints what was averaged."""
    paths = save_average(RunDirectory(options.path), last=options.last)
    for path in paths:
        print(path)
