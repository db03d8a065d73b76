"""`model.fit` with the callbacks of a run."""

import contextlib
import functools
import math
import sys

import keras

from kseq import devices
from kseq.data.files.device_parts import distribute
from kseq.models.optimizer_update import nested_optimizers
from kseq.terminal import progress
from kseq.training.compile_shapes import compile_shapes
from kseq.training.metrics_log import MetricsLog, verbosity
from kseq.training.model_summary import model_summary
from kseq.training.optimizer import kept_weights
from kseq.training.range_test import RangeTest
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
    facts=(),
    histograms=False,
    graph=False,
):
    """Trains a model in its run, from where the run stopped.

    It is `model.fit` with the callbacks in the required order, without
    shuffling, from the epoch of the newest checkpoint. In a cluster all
    processes except the chief end here.

    Args:
        model: compiled, in the scope of `kseq.devices.device_strategy()`.
        batches: `tf.data.Dataset` that repeats.
        checkpoints: `Checkpoints`, of the run.
        steps: int, steps of training in total.
        steps_per_epoch: int; the model is validated and saved each time after
            this number of steps, and after the last step.
        callbacks: such as `Validation`; they run before the others.
        is_last: bool, whether this is the last training of the process.
        facts: lines of text about the data, for the README of the run.
        histograms: bool, whether TensorBoard gets the distribution of each
            weight at the end of an epoch.
        graph: bool, whether TensorBoard gets the graph of the first step.

    Raises:
        ValueError: if the model was made outside of the strategy's scope.
    """
    if model.distribute_strategy is not devices.device_strategy():
        raise ValueError(
            "The model must be created and compiled within "
            "devices.device_strategy().scope()."
        )
    log = MetricsLog(
        checkpoints.run,
        steps,
        every=1 if _is_range_test(model.optimizer) else 50,
        monitor=checkpoints.monitor,
        mode=checkpoints.mode,
        histograms=histograms,
        graph=graph,
    )
    validations = (each for each in callbacks if isinstance(each, Validation))
    evaluation = getattr(next(validations, None), "evaluation", None)
    readme = RunReadme(checkpoints, steps, evaluation, facts)
    checkpoints.validation = (*callbacks, log, readme)
    first_epoch, rest = checkpoints.restore(
        model, batches, steps_per_epoch, steps
    )
    log.repeats_validation = checkpoints.needs_validation
    if devices.is_chief():
        print(model_summary(model), flush=True)
    save_before_validation = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda _, logs: checkpoints.save_before_validation(logs)
    )
    epochs = math.ceil(steps / steps_per_epoch)
    if first_epoch < epochs:
        compile_shapes(model, batches)
    with (
        contextlib.ExitStack() as at_the_end,
        contextlib.ExitStack() as first_step,
    ):
        at_the_end.callback(checkpoints.release_signals)
        train = functools.partial(
            model.fit,
            steps_per_epoch=steps_per_epoch,
            epochs=epochs,
            callbacks=[
                _FirstStep(first_step),
                save_before_validation,
                *checkpoints.validation,
                checkpoints,
            ],
            shuffle=False,
            verbose=verbosity(),
        )
        if checkpoints.needs_validation and first_epoch < epochs:
            # Without a step: training may end with it. Keras ends with the
            # moving averages in place of the weights.
            with kept_weights(model):
                train(
                    distribute(rest, model.distribute_strategy),
                    initial_epoch=epochs,
                )
            if model.stop_training:
                first_epoch = epochs
        train(
            distribute(rest, model.distribute_strategy),
            initial_epoch=first_epoch,
        )
    if is_last and not devices.is_chief():
        sys.exit(0)


def _is_range_test(optimizer):
    """Whether the learning rate is that of a `RangeTest`."""
    *_, inner = nested_optimizers(optimizer)
    return isinstance(inner._learning_rate, RangeTest)


class _FirstStep(keras.callbacks.Callback):
    """Reports that the first step is compiled, which may take minutes."""

    def __init__(self, shown):
        super().__init__()
        self.shown = shown
        self.is_first = True

    def on_train_batch_begin(self, batch, logs=None):
        if self.is_first:
            self.is_first = False
            self.shown.enter_context(progress("Compiling the training step"))

    def on_train_batch_end(self, batch, logs=None):
        self.shown.close()
