"""Pretraining of a classifier on documents without their labels."""

import math

import keras

from kseq.devices import is_chief
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import checkpoint_paths
from kseq.training.checkpoints import Checkpoints
from kseq.training.fit import fit

_LEARNING_RATE = 0.003  # at its peak
_WARMUP_STEPS = 100
_STEPS_PER_EPOCH = 250  # after which it is saved


def pretrain(run, model, batches, steps):
    """Trains the embedding and the RNN of a classifier to predict pieces.

    Its embedding and its recurrent layer over pieces learn, by
    `kseq.models.PiecePrediction`; all other layers stay as they are. It has its
    own checkpoints, in `pretraining/` of the run: it resumes if it was killed,
    and is skipped once the classifier has a checkpoint.

    Args:
        run: `RunDirectory`, saved.
        model: `HierarchicalAttention` or `FlatAttention`.
        batches: of `kseq.data.piece_prediction_batches`.
        steps: int, rounded up to a multiple of 250 if there are more.

    Raises:
        RunError: where the model does not read pieces one after the other.

    Reference:
        Dai and Le 2015, arXiv:1511.01432.
    """
    if not hasattr(model, "piece_prediction"):
        raise RunError(
            "Pretraining needs a recurrent model, hierarchical or flat. "
            f"Received: {model.name}"
        )
    run.check_saved()
    if checkpoint_paths(run.checkpoints / "last"):
        return
    # Not started: its config and its lock are those of the run.
    own = RunDirectory(run.pretraining)
    if is_chief():
        own.path.mkdir(exist_ok=True)
        print("Pretraining on the pieces of the documents:", flush=True)

    with model.distribute_strategy.scope():
        prediction = model.piece_prediction()
        schedule = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=0.0,
            warmup_target=_LEARNING_RATE,
            warmup_steps=_WARMUP_STEPS,
            decay_steps=steps,
        )
        prediction.compile(
            keras.optimizers.Adam(schedule),
            clip_norm=1.0,
            accumulation_steps=model.accumulation_steps,
        )
    steps_per_epoch = min(steps, _STEPS_PER_EPOCH)
    fit(
        prediction,
        batches,
        Checkpoints(own, monitor=None, keep=2),
        steps=math.ceil(steps / steps_per_epoch) * steps_per_epoch,
        steps_per_epoch=steps_per_epoch,
        is_last=False,
    )
