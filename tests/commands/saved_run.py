"""A run without training."""

import dataclasses

from kseq import runs
from kseq.runs.checkpoint_files import write_checkpoint


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1


def saved_run(served, path, more=None):
    """Saves a generator as a run; gives its path."""
    run = runs.RunDirectory(path)
    run.start(Config())
    run.save(served, more=more)
    write_checkpoint(
        run.checkpoints / "last", step=1, keep=1, vars=served.model.variables
    )
    return run.path
