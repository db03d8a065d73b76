"""kseq export: one more version of a run's SavedModel."""

from pathlib import Path

from kseq.commands.open_predictor import open_predictor
from kseq.runs import RunDirectory
from kseq.runs.exports import check_exports
from kseq.serving import export


def run(options):
    """Writes it, and prints its path."""
    run = RunDirectory(options.path)
    directory = Path(options.to) if options.to else run.exports
    check_exports(directory, run.path)  # before anything is loaded
    print(export(open_predictor(options).served, directory, run))
