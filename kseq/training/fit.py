"""`model.fit` with all that makes a run exact."""

import math

from kseq import devices
from kseq.training.metrics_log import MetricsLog, verbosity


def fit(
    model,
    batches,
    checkpoints,
    *,
    steps,
    steps_per_epoch,
    callbacks=(),
    is_last=True,
):
    """Trains a model in its run, from where the run stopped.

    It is `model.fit` with the callbacks in the order that they need, on the
    batches as they are (`shuffle=False`), from the epoch of the newest
    checkpoint. In a cluster the processes that are not the chief end here.

    Args:
        model: compiled, in the scope of `kseq.devices.device_strategy()`.
        batches: `tf.data.Dataset` that repeats.
        checkpoints: `Checkpoints`, of the run.
        steps: int, of the whole training.
        steps_per_epoch: int; every so many steps, and after the last one, the
            model is validated and saved.
        callbacks: come first, such as `Validation`.
        is_last: bool, whether nothing is trained after this.

    Raises:
        ValueError: if the model was made outside of the strategy's scope.
    """
    if model.distribute_strategy is not devices.device_strategy():
        raise ValueError(
            "The model must be made and compiled within "
            "devices.device_strategy().scope()."
        )
    model.fit(
        batches,
        steps_per_epoch=steps_per_epoch,
        epochs=math.ceil(steps / steps_per_epoch),
        initial_epoch=checkpoints.restore(model, steps_per_epoch, steps),
        callbacks=[
            *callbacks,
            MetricsLog(checkpoints.run, steps),
            checkpoints,
        ],
        shuffle=False,
        verbose=verbosity(),
    )
    if is_last:
        devices.end_unless_chief()
