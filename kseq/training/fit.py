"""`model.fit` with all that makes a run exact."""

from kseq import devices
from kseq.training.metrics_log import MetricsLog, verbosity
from kseq.training.run_readme import RunReadme
from kseq.training.validation import Validation


def fit(
    model,
    batches,
    checkpoints,
    *,
    steps,
    steps_per_epoch,
    callbacks=(),
    is_last=True,
    data_summary="",
    histograms=False,
    graph=False,
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
        steps_per_epoch: int; after so many steps the model is validated and
            saved.
        callbacks: come first, such as `Validation`.
        is_last: bool, whether nothing is trained after this.
        data_summary: str, what the data hold, in lines, for the README of
            the run.
        histograms: bool, whether TensorBoard gets the distribution of each
            weight at the end of an epoch.
        graph: bool, whether TensorBoard gets the graph of the first step.

    Raises:
        ValueError: if the model was made outside of the strategy's scope.
    """
    if model.distribute_strategy is not devices.device_strategy():
        raise ValueError(
            "The model must be made and compiled within "
            "devices.device_strategy().scope()."
        )
    log = MetricsLog(
        checkpoints.run,
        steps,
        monitor=checkpoints.monitor,
        mode=checkpoints.mode,
        histograms=histograms,
        graph=graph,
    )
    evaluations = [
        callback.evaluation
        for callback in callbacks
        if isinstance(callback, Validation)
    ]
    readme = RunReadme(
        checkpoints, steps, next(iter(evaluations), None), data_summary
    )
    model.fit(
        batches,
        steps_per_epoch=steps_per_epoch,
        epochs=steps // steps_per_epoch,
        initial_epoch=checkpoints.restore(model, steps_per_epoch),
        callbacks=[*callbacks, log, readme, checkpoints],
        shuffle=False,
        verbose=verbosity(),
    )
    if is_last:
        devices.end_unless_chief()
