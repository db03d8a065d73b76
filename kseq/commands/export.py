"""kseq export: a run becomes a SavedModel."""

from pathlib import Path

from kseq.commands.open_model import open_run
from kseq.serving import export


def run(options):
    """Prints where the new version is."""
    name = options.path.resolve().name
    directory = options.to or Path("saved_models", name)
    print(export(open_run(options), directory))
