"""kseq average: the mean of the last or the best checkpoints of a run."""

from kseq.runs import RunDirectory, save_average


def run(options):
    """Prints what was averaged."""
    run = RunDirectory(options.path)
    paths = save_average(run, last=options.last, best=options.best)
    for path in paths:
        print(path)
