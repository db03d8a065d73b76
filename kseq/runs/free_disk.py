"""Check that a run fits on its disk."""

import math
import os
import shutil
from pathlib import Path

import tensorflow as tf

from kseq.user_error import DiskError


def check_free_disk(path, model, keep, keep_best=0):
    """Raises unless the checkpoints of a run and its export will fit.

    Checkpoints that are there count as free, because a run that resumes or is
    overwritten deletes the same amount. Its other files, such as prepared data,
    may stay.

    Args:
        path: `pathlib.Path` of the run.
        model: `keras.Model` that is trained.
        keep: int, how many of the last checkpoints are kept.
        keep_best: int, how many of the best weights are kept.

    Raises:
        DiskError: if there is not enough space.
    """
    needed = _needed(model, keep, keep_best)
    free = shutil.disk_usage(path).free + _size(path / "checkpoints")
    if needed > free:
        raise DiskError(
            f"{path} needs about {math.ceil(needed / 1e6):,} MB for "
            f"{keep + keep_best} "
            "checkpoints and an export; its disk has "
            f"{math.floor(free / 1e6):,} MB. Free disk space, or use a "
            "directory on another disk."
        )


def _needed(model, keep, keep_best):
    weights = _bytes(model.variables)
    state = weights + _bytes_of_optimizer(model)
    # One more of each is written before an old one is deleted, and a state
    # within an epoch is kept besides. Weights alone are in `best`, in
    # `average` and in the export; and in `top`.
    return (keep + 2) * state + (4 + keep_best + bool(keep_best)) * weights


def _bytes_of_optimizer(model):
    optimizer = getattr(model, "optimizer", None)
    if getattr(optimizer, "built", False):
        return _bytes(optimizer.variables)
    while hasattr(optimizer, "inner_optimizer"):  # of mixed_float16
        optimizer = optimizer.inner_optimizer
    slots = 2 + bool(getattr(optimizer, "use_ema", False))  # those of Adam
    return slots * _bytes(model.trainable_variables)


def _bytes(variables):
    return sum(
        math.prod(variable.shape) * tf.as_dtype(variable.dtype).size
        for variable in variables
    )


def _size(path):
    return sum(
        Path(folder, name).lstat().st_size
        for folder, _, names in os.walk(path)
        for name in names
    )
