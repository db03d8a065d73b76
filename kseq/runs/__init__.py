"""The files of runs: configuration, checkpoints, their average."""

from kseq.runs.averaging import average_checkpoints, save_average
from kseq.runs.checkpoint_files import best_weights
from kseq.runs.run_directory import RunDirectory
from kseq.user_error import DiskError, RunError

__all__ = [
    "DiskError",
    "RunDirectory",
    "RunError",
    "average_checkpoints",
    "best_weights",
    "save_average",
]
