"""Averages of checkpoints."""

import numpy as np
import tensorflow as tf

from kseq.files.atomic_write import atomic_write
from kseq.runs.checkpoint_files import (
    BrokenCheckpointError,
    best_steps,
    checkpoint_paths,
    numbered,
    read_checkpoint,
    read_scores,
    step_of,
    write_checkpoint,
)
from kseq.runs.model_card import with_weights
from kseq.terminal import progress
from kseq.user_error import RunError, check_integers


def average_checkpoints(paths):
    """The mean of the weights in several checkpoints.

    What is not a float, such as the seeds of dropout, is taken from the last
    one.

    Args:
        paths: list of str, see `checkpoint_paths`.

    Returns:
        A list of arrays, as `model.variables` are.

    Raises:
        RunError: if one is broken, or they differ in number or shape.

    Reference:
        Popel and Bojar 2018, arXiv:1804.00247, section 4.10.
    """
    for count, path in enumerate(paths):
        values = [
            value.numpy()
            for value in numbered(read_checkpoint(path, "vars"), "vars")
        ]
        if count == 0:
            sums = [np.zeros(value.shape, "float64") for value in values]
        if [v.shape for v in values] != [total.shape for total in sums]:
            raise RunError(
                f"The weights of {path} and {paths[0]} have different shapes."
            )
        for total, value in zip(sums, values, strict=True):
            total += value
    return [
        (total / len(paths)).astype(value.dtype)
        if np.issubdtype(value.dtype, np.floating)
        else value
        for total, value in zip(sums, values, strict=True)
    ]


def save_average(run, last=5, *, best=None):
    """Averages checkpoints of a run into `checkpoints/average`.

    Args:
        run: `RunDirectory`.
        last: int, how many of the last checkpoints; at least 1.
        best: int, how many of the best checkpoints instead, by the score of
            validation, if training has kept them: see `keep_best` of
            `kseq.training.Checkpoints`. Of equal scores the first is better.

    Returns:
        The paths that were averaged, the oldest first: fewer than asked for
        where the run has fewer.

    Raises:
        ValueError: if `last` or `best` is less than 1.
        RunError: if the run has none, or a broken one, or their weights
            differ in number or shape.
    """
    check_integers(last=last)
    check_integers(best=best, optional=True)
    directory = run.checkpoints / ("last" if best is None else "top")
    while paths := checkpoint_paths(directory):
        try:
            chosen = paths[-last:] if best is None else _best(paths, best)
            with progress(f"Averaging {len(chosen)} checkpoints"):
                _average(run, chosen)
            return chosen
        except BrokenCheckpointError:
            # Unless training has deleted one to write another.
            if {*paths} <= {*checkpoint_paths(directory)}:
                raise
    if best is None:
        raise RunError(f"{run.path} has no checkpoints to average.")
    raise RunError(
        f"{run.path} has no best checkpoints to average: training keeps them "
        "with --average-of best."
    )


def _best(paths, count):
    steps = best_steps(read_scores(paths), count)
    return [path for path in paths if step_of(path) in steps]


def _average(run, paths):
    weights = [tf.Variable(value) for value in average_checkpoints(paths)]
    step = step_of(paths[-1])
    write_checkpoint(run.checkpoints / "average", step, [step], vars=weights)
    if run.readme.is_file():
        card = run.readme.read_text("utf-8", "replace")
        atomic_write(run.readme, with_weights(card, "average", step))
