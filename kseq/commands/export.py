"""kseq export: one more version of a run's SavedModel."""

from pathlib import Path

from kseq.commands.open_predictor import open_predictor
from kseq.serving import export


def run(options):
    """Writes it, and prints its path."""
    served = open_predictor(options).served
    directory = options.to or Path("saved_models") / options.path.resolve().name
    print(export(served, directory))
