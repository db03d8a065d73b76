"""The start of a recipe: its run and its random numbers."""

import keras
import tensorflow as tf

from kseq.data.files.text_files import matching_files
from kseq.evaluation import metrics_named
from kseq.files.optional_packages import check_trackers
from kseq.runs import RunDirectory
from kseq.runs.run_directory import batch_fields

_SMALL = 100_000  # pairs


def start_run(config):
    """Starts the run of a recipe or resumes it, and seeds all random numbers.

    When a run resumes, patience, batch sizes, the time between two checkpoints,
    trackers and calibration may have changed, and so may the steps, unless the
    learning rates depend on them.

    Args:
        config: dataclass instance, see
            `kseq.command_line.option_types.TrainingOptions`.

    Returns:
        Its `RunDirectory`, which is locked, and the config of the run: see
        `RunDirectory.start`.

    Raises:
        RunError: if the directory cannot be used, see there.
        UserError: if a package or a program is missing that an option needs,
            or the file of `vectors` is, which is read after all others.
    """
    check_trackers(getattr(config, "track", ()))
    if metrics := getattr(config, "metrics", ()):
        metrics_named(metrics)
    run = RunDirectory(config.run)
    may_change = (
        *("patience", "save_every", "track", "calibrate"),
        *batch_fields(config),
    )
    if getattr(config, "schedule", "") not in ("cosine", "range_test"):
        may_change += ("steps",)
    config = run.start(config, may_change, config.overwrite)
    if getattr(config, "vectors", "") and not run.kept:
        matching_files(config.vectors)
    set_seed(config.seed, config.deterministic)
    return run, config


def choose_dropout(run, config, corpus, small=0.3):
    """Sets `dropout`, if it is None, by the number of training pairs.

    In the same number of steps, a small corpus is read more often than a large
    one, and so needs more dropout. Above 100,000 pairs the rate is 0.1.

    Args:
        run: `RunDirectory`, which writes it into its config.
        config: that `start_run` has returned.
        corpus: `kseq.data.PreparedPairs`.
        small: float, the rate up to 100,000 pairs.

    Returns:
        The config of the run.
    """
    is_small = sum(corpus.counts) <= _SMALL
    return run.decide(config, dropout=small if is_small else 0.1)


def set_seed(seed, deterministic=False):
    """Seeds all random numbers of this process.

    On a CPU that is enough: the same command gives the same weights, bit for
    bit. GPU kernels may add in any order unless `deterministic` is True, which
    applies until the process ends.

    Args:
        seed: int.
        deterministic: bool, whether every op must give the same bits each
            time. Ops for which TensorFlow has no such kernel raise an error.

    Reference:
        `tf.config.experimental.enable_op_determinism`.
    """
    keras.utils.set_random_seed(seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
