"""Training in numbers: metrics.jsonl, TensorBoard, and lines for a pipe."""

import json
import math
import sys
import time

import keras
import tensorflow as tf

from kseq.devices import is_chief
from kseq.whole_files import write_whole


class MetricsLog(keras.callbacks.Callback):
    """Writes what `fit` measures.

    Every `every` steps: loss, perplexity, accuracy, gradient norm and padding
    over those steps alone, the learning rate, and tokens per second of
    training time, which are those that `ExactModel` counts. At the end of an
    epoch: every `val_` number in the logs, so it must come after the callbacks
    that measure them. Where standard output is no terminal, and a progress
    bar of no use, each also becomes a line there.

    A resumed run drops what was written of steps that it will repeat. If it
    was stopped between two lines, the next line is about the steps since.

    Args:
        run: `RunDirectory`; gets `metrics.jsonl` and `tensorboard/`.
        total_steps: int, of the whole training, to print.
        every: int, steps.
    """

    def __init__(self, run, total_steps, *, every=50):
        super().__init__()
        self.run = run
        self.total_steps = total_steps
        self.every = every
        self._writer = None

    def on_train_begin(self, logs=None):
        if not is_chief():
            return
        self._writer = tf.summary.create_file_writer(str(self.run.tensorboard))
        self._drop_later_records()

    def on_epoch_begin(self, epoch, logs=None):
        # More than none where an epoch is finished that was stopped.
        self._in_epoch = self._step() - epoch * (self.params["steps"] or 0)
        self._steps = 0
        self._before = {}
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self._in_epoch += 1
        self._steps += 1
        if self._in_epoch % self.every == 0:
            self._write_window()

    def on_epoch_end(self, epoch, logs=None):
        record = {k: v for k, v in logs.items() if k.startswith("val_")}
        if record:
            self._write(record)

    def on_train_end(self, logs=None):
        if self._writer is not None:
            self._writer.close()

    def _write_window(self):
        now = time.perf_counter()
        means = self._window_means()
        tokens = means.pop("tokens") * self._steps
        if "perplexity" in means:
            means["perplexity"] = math.exp(min(means["perplexity"], 80))
        self._write(
            {
                **means,
                "learning_rate": _number(self.model.optimizer.learning_rate),
                "tokens_per_second": tokens / (now - self._start),
            }
        )
        self._start = now
        self._steps = 0

    def _window_means(self):
        """Of what the metrics have seen since this was last asked.

        Keras itself reports means that run from the start of the epoch.
        """
        means = {}
        for metric in self.model.metrics:
            now = _number(metric.total), _number(metric.count)
            total, count = self._before.get(metric.name, (0.0, 0.0))
            if now[1] > count:  # what the model's losses do not tell has none
                means[metric.name] = (now[0] - total) / (now[1] - count)
            self._before[metric.name] = now
        return means

    def _step(self):
        return int(_number(self.model.optimizer.iterations))

    def _drop_later_records(self):
        if self.run.metrics.is_file():
            lines = self.run.metrics.read_text("utf-8").splitlines(True)
            kept = [line for line in lines if self._is_done(line)]
            if kept != lines:
                write_whole(self.run.metrics, "".join(kept))

    def _is_done(self, line):
        try:
            return json.loads(line)["step"] <= self._step()
        except ValueError:  # half a line, of a run that was killed
            return False

    def _write(self, record):
        if not is_chief():
            return
        step = self._step()
        with self.run.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **record}) + "\n")
        with self._writer.as_default():
            for name, value in record.items():
                part = "validation/" if name.startswith("val_") else "train/"
                tf.summary.scalar(
                    part + name.removeprefix("val_"), value, step=step
                )
        self._writer.flush()
        if not verbosity():
            numbers = "  ".join(f"{k} {v:.4g}" for k, v in record.items())
            print(f"step {step}/{self.total_steps}  {numbers}", flush=True)


def _number(value):
    """Of a variable, also one of several devices, or a tensor."""
    return float(keras.ops.convert_to_numpy(value))


def verbosity():
    """`verbose` for `fit`: 1, a progress bar, on the chief's terminal."""
    return int(sys.stdout.isatty() and is_chief())
