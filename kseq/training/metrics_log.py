"""Metrics for metrics.jsonl, TensorBoard and non-interactive output."""

import json
import math
import sys
import time

import keras
import tensorflow as tf

from kseq.devices import gpu_memory, is_chief
from kseq.files.atomic_write import atomic_write, named_errors
from kseq.files.recorded_metrics import (
    is_validation,
    recorded_metrics,
    row_of,
)
from kseq.training.event_files import (
    close_event_files,
    event_writer,
    start_event_files,
    write_hyperparameters,
)
from kseq.training.optimizer import global_step
from kseq.training.trackers import Trackers, start_trackers
from kseq.user_error import check_integers

_GB = 1e9


class MetricsLog(keras.callbacks.Callback):
    """Writes what `fit` measures.

    Every `every` steps, and at the last of an epoch: loss, perplexity,
    accuracy, gradient norm and padding over the steps since then alone, the
    learning rate, and tokens (as counted by `ExactModel`) per second of
    training time, and `waiting_for_data`, the fraction of this time for which
    steps waited for their batches. At the end of an epoch: every `val_` number
    in the logs, so it must come after the callbacks that measure them. On a
    GPU, `gpu_memory` of each line is the peak so far, in GB. If standard output
    is not a terminal, each is also printed there as a line.

    TensorBoard shows training and validation as two runs with the same tags,
    in one chart. There `loss` is without label smoothing in both;
    `smoothed_loss` is what is minimized. Its HPARAMS tab has the config and,
    under `best/`, the scores of the best epoch. The trackers that the config
    names with `track` get the same numbers.

    A resumed run deletes the lines of steps that it will repeat. Those of the
    epoch within which it resumes are marked in `metrics.jsonl`: `"resumed":
    true`. The first one covers the steps since then, and the others are means
    of sums that were rounded differently, from there on.

    Args:
        run: `RunDirectory`; gets `metrics.jsonl` and `tensorboard/`.
        total_steps: int, steps of training in total, to print.
        every: int, steps.
        monitor: name of the number in the logs whose best epoch counts, as
            in `Checkpoints`; None for no best scores.
        mode: "max" or "min".
        histograms: bool, whether TensorBoard gets the distribution of each
            weight at the end of an epoch.
        graph: bool, whether TensorBoard gets the graph of the first step.

    Attributes:
        repeats_validation: bool, whether the next call of `fit` begins with
            the validation of the step that was saved last; what an interrupted
            one has written of it is deleted then.
    """

    def __init__(
        self,
        run,
        total_steps,
        *,
        every=50,
        monitor=None,
        mode="max",
        histograms=False,
        graph=False,
    ):
        super().__init__()
        check_integers(every=every)
        self.run = run
        self.total_steps = total_steps
        self.every = every
        self.monitor = monitor
        self.mode = mode
        self.histograms = histograms
        self.graph = graph
        self.repeats_validation = False
        self._writes_graph = False
        self._is_resumed = False
        self._trackers = Trackers([])

    def on_train_begin(self, logs=None):
        self._writes_graph = self.graph and is_chief()
        if not is_chief():
            return
        self._drop_later_records()
        self._trackers = start_trackers(self.run)
        start_event_files(self.run, self._step(), self.repeats_validation)
        self.repeats_validation = False
        # Together with the scores, which it lists.
        with event_writer(self.run, "validation").as_default():
            write_hyperparameters(self.run)

    def on_epoch_begin(self, epoch, logs=None):
        # More than none where an epoch is finished that was stopped.
        start = epoch * (self.params["steps"] or 0)
        self._in_epoch = self._step() - start
        self._last = min(self.params["steps"] or 0, self.total_steps - start)
        self._is_resumed = self._in_epoch > 0
        self._before = {}
        self._start_window(time.perf_counter())

    def on_train_batch_begin(self, batch, logs=None):
        if self._writes_graph:
            tf.summary.trace_on(graph=True)

    def on_train_batch_end(self, batch, logs=None):
        if self._writes_graph:
            self._writes_graph = False
            with event_writer(self.run, "train").as_default():
                tf.summary.trace_export("training_step", step=self._step())
        self._in_epoch += 1
        self._steps += 1
        if self._in_epoch % self.every == 0 or self._in_epoch == self._last:
            self._write_window()

    def on_epoch_end(self, epoch, logs=None):
        record = {k: v for k, v in logs.items() if k.startswith("val_")}
        if record:
            self._write(record)
            self._show("validation", _without_prefix(record))
            self._show_best()
        if self.histograms and is_chief():
            self._show_weights()

    def on_train_end(self, logs=None):
        is_done = is_chief() and self._step() == self.total_steps
        if is_done and is_improving(self.run, self.monitor, self.mode):
            print(
                f"{self.monitor} still improved at the end: more steps may "
                "give a better model."
            )
        close_event_files(self.run)
        self._trackers.end()

    def _write_window(self):
        now = time.perf_counter()
        seconds = now - self._start
        means = self._window_means()
        tokens = means.pop("tokens", None)  # which a user's model may not count
        likelihood = means.get("perplexity")  # its logarithm
        if likelihood is not None:
            means["perplexity"] = math.exp(min(likelihood, 80))
        record = {
            **means,
            "learning_rate": _number(self.model.optimizer.learning_rate),
        }
        if tokens is not None:
            record["tokens_per_second"] = tokens * self._steps / seconds
        if self._waited is not None:
            waiting = self.model.seconds_waiting - self._waited
            record["waiting_for_data"] = waiting / seconds
        self._write(record, is_resumed=self._is_resumed)
        is_smoothed = getattr(self.model, "label_smoothing", 0)
        if is_smoothed and likelihood is not None:
            record["smoothed_loss"] = record["loss"]
            record["loss"] = likelihood
        self._show("train", record)
        self._start_window(now)

    def _start_window(self, now):
        self._steps = 0
        self._start = now
        self._waited = getattr(self.model, "seconds_waiting", None)

    def _window_means(self):
        """The means of the metrics since the last call.

        Keras itself reports means that run from the start of the epoch.
        """
        means = {}
        for metric in self.model.metrics:
            if not isinstance(metric, keras.metrics.Mean):
                continue  # of a user
            now = _number(metric.total), _number(metric.count)
            total, count = self._before.get(metric.name, (0.0, 0.0))
            if now[1] > count:  # 0 if the losses do not report it
                means[metric.name] = (now[0] - total) / (now[1] - count)
            self._before[metric.name] = now
        return means

    def _step(self):
        return global_step(self.model)

    def _drop_later_records(self):
        if self.run.metrics.is_file():
            lines = self.run.metrics.read_bytes().splitlines(True)
            kept = [line for line in lines if self._is_done(line)]
            if kept != lines:
                atomic_write(self.run.metrics, b"".join(kept))

    def _is_done(self, line):
        row = row_of(line)
        if row is None:  # half a line, of a run that was killed
            return False
        if self.repeats_validation and is_validation(row):
            return row["step"] < self._step()
        return row["step"] <= self._step()

    def _write(self, record, is_resumed=False):
        if not is_chief():
            return
        if peak := gpu_memory():
            record = {**record, "gpu_memory": peak / _GB}
        step = self._step()
        row = {"step": step, **record}
        if is_resumed:
            row["resumed"] = True
        path = self.run.metrics
        with named_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if not verbosity():
            numbers = "  ".join(f"{k} {v:.4g}" for k, v in record.items())
            print(f"step {step}/{self.total_steps}  {numbers}", flush=True)

    def _show(self, part, values):
        if not is_chief():
            return
        writer = event_writer(self.run, part)
        with writer.as_default(step=self._step()):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        writer.flush()
        self._trackers.log(
            self._step(), {f"{part}/{name}": values[name] for name in values}
        )

    def _show_best(self):
        best = self.monitor and best_validation(
            self.run, self.monitor, self.mode
        )
        if best:
            scores = _without_prefix(best)
            named = {f"best/{name}": scores[name] for name in scores}
            self._show("validation", named)

    def _show_weights(self):
        writer = event_writer(self.run, "train")
        with writer.as_default(step=self._step()):
            for variable in self.model.trainable_variables:
                weights = keras.ops.convert_to_numpy(variable)
                tf.summary.histogram(variable.path, weights)
        writer.flush()


def _without_prefix(record):
    """The scores of a validation, without the prefix of their names."""
    return {
        name.removeprefix("val_"): value
        for name, value in record.items()
        if name.startswith("val_")
    }


def _number(value):
    """The float of a tensor or a variable, also of several devices."""
    return float(keras.ops.convert_to_numpy(value))


def verbosity():
    """`verbose` for `fit`: 1, a progress bar, on the chief's terminal."""
    return int(sys.stdout.isatty() and is_chief())


def best_validation(run, monitor, mode="max"):
    r"""Finds the validation with the best score in `metrics.jsonl`.

    Args:
        run: `RunDirectory`.
        monitor: name of the score, such as "val_bleu".
        mode: "max" or "min".

    Returns:
        A dict, `step` and the scores of that step, or None where nothing
        was validated. Of equal scores the first is the best.

    Example:
        >>> run = kseq.runs.RunDirectory(".")
        >>> _ = run.metrics.write_text(
        ...     '{"step": 5, "val_loss": 2.0}\n{"step": 9, "val_loss": 1.5}\n'
        ... )
        >>> best_validation(run, "val_loss", "min")
        {'step': 9, 'val_loss': 1.5}
    """
    records = _validations(run, monitor)
    return _best(records, monitor, mode) if records else None


def is_improving(run, monitor, mode="max"):
    """Whether a training has ended too early, by its validations.

    Args:
        run: `RunDirectory`.
        monitor: name of the score, such as "val_bleu".
        mode: "max" or "min".

    Returns:
        Whether the best of the last quarter of the validations is more than
        1 % better than all before; False where there are less than four.
    """
    records = _validations(run, monitor)
    count = len(records) // 4
    if not count:
        return False
    before = _best(records[:-count], monitor, mode)[monitor]
    last = _best(records[-count:], monitor, mode)[monitor]
    gain = last - before if mode == "max" else before - last
    return gain > 0.01 * abs(before)


def _validations(run, monitor):
    return [
        record
        for record in recorded_metrics(run.metrics, monitor)
        if _is_finite(record.get(monitor))
    ]


def _best(records, monitor, mode):
    choose = max if mode == "max" else min
    return choose(records, key=lambda record: record[monitor])


def _is_finite(score):
    return isinstance(score, int | float) and math.isfinite(score)
