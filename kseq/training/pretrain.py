"""A language model of the documents, before their labels."""

import math

import keras

from kseq.devices import is_chief
from kseq.runs.checkpoint_files import checkpoint_paths
from kseq.runs.run_directory import RunDirectory, RunError
from kseq.training.checkpoints import Checkpoints
from kseq.training.metrics_log import MetricsLog, verbosity

_LEARNING_RATE = 0.003  # at its peak
_WARMUP_STEPS = 100
_STEPS_PER_EPOCH = 250  # after which it is saved


def pretrain(run, model, batches, steps):
    """Teaches a classifier words, by a `LanguageModel` of its documents.

    Its embedding and its recurrent layer over words learn; all else stays as
    it is. This is a training of its own, in the `pretraining/` of the run:
    killed, it goes on where it stopped, and once the classifier itself has a
    checkpoint there is nothing left to do.

    Args:
        run: `RunDirectory`, started.
        model: `HierarchicalAttention` or `FlatAttention`.
        batches: of `kseq.data.language_model_batches`.
        steps: int, rounded up to a multiple of 250 if there are more.

    Raises:
        RunError: where the model does not read words one after the other.

    Reference:
        Dai and Le 2015, arXiv:1511.01432.
    """
    if not hasattr(model, "language_model"):
        raise RunError(
            "Pretraining is for models that read one word after the other, "
            f"hierarchical or flat. Received: {model.name}"
        )
    if checkpoint_paths(run.checkpoints / "last"):
        return
    # Not started: its config and its lock are those of the run.
    own = RunDirectory(run.pretraining)
    own.batch_sizes = run.batch_sizes
    if is_chief():
        own.path.mkdir(exist_ok=True)
        print("Learning to predict the words of the documents:", flush=True)

    with model.distribute_strategy.scope():
        reader = model.language_model()
        schedule = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=0.0,
            warmup_target=_LEARNING_RATE,
            warmup_steps=_WARMUP_STEPS,
            decay_steps=steps,
        )
        reader.compile(keras.optimizers.Adam(schedule), clip_norm=1.0)
    steps_per_epoch = min(steps, _STEPS_PER_EPOCH)
    epochs = math.ceil(steps / steps_per_epoch)
    checkpoints = Checkpoints(own, keep=2)
    reader.fit(
        batches,
        steps_per_epoch=steps_per_epoch,
        epochs=epochs,
        initial_epoch=checkpoints.restore(reader, steps_per_epoch),
        callbacks=[MetricsLog(own, epochs * steps_per_epoch), checkpoints],
        shuffle=False,
        verbose=verbosity(),
    )
