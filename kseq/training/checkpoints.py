"""Checkpoints of the complete state of training."""

import contextlib
import json
import logging
import math
import os
import signal
import sys
import threading
import time

import keras
import tensorflow as tf

from kseq.data.files.stream_positions import position_after, starting_at
from kseq.devices import is_chief, num_machines, on_all_machines
from kseq.files.atomic_write import atomic_write
from kseq.models.step_function import READ_EVERY, TrainFunction
from kseq.process import discard_lost_output, stop_signals, take_over
from kseq.runs.checkpoint_files import (
    BrokenCheckpointError,
    assign,
    best_steps,
    checkpoint_paths,
    delete_others,
    entry,
    numbered,
    read_newest,
    read_scores,
    step_of,
    write_checkpoint,
)
from kseq.terminal import below_keras_bar, progress
from kseq.training.optimizer import ema_weights
from kseq.user_error import RunError, check_choice, check_integers

_NEEDS_ONE_ITERATOR = (
    "Checkpoints needs fit(steps_per_epoch=...) and data that repeat."
)
# The entry of a checkpoint. Earlier versions have iterators under other names,
# and what they have read is found again by its number of batches.
_POSITION = "stream_position"
_BEFORE_VALIDATION = "before_validation"
_LOGS = "logs"

_log = logging.getLogger(__name__)


class Checkpoints(keras.callbacks.Callback):
    """Saves the state of training so that the same command resumes it.

    `checkpoints/last` holds the newest states of all that changes: weights,
    seeds of dropout, optimizer, position in the data. `checkpoints/best`
    holds the weights at the best value of what is monitored (the moving
    averages if the optimizer has them), and that value; `checkpoints/top` the
    weights of the best validations, for an average. At the end of an epoch
    `last` is written before the validation, and `best` after it: if the
    process is killed in between, it resumes with the validation. On request
    `last` is also written every few minutes.

    On SIGTERM, Ctrl-C and SIGHUP (a closed terminal, unless `nohup` ignores it)
    the step is finished, `last` saved and the process ended with exit code 143,
    130 or 129; a second SIGTERM or Ctrl-C stops at once. During a validation,
    the process ends at once, because the state was saved before. If one machine
    of a cluster gets a signal, all machines end after the same step, a multiple
    of ten within the epoch. The monitored value is that of the chief.

    It must be the last callback, and `fit` needs `steps_per_epoch` and a data
    set that repeats: Keras then keeps one iterator over all epochs.
    `kseq.training.fit` does both.

    The position in the data is one integer. The data sets of `kseq.data` start
    at any position immediately, even on a different number of devices. With any
    other data set, the batches that were already used are read again and
    skipped, which finds the same position if the data are deterministic.

    Args:
        run: `RunDirectory`.
        monitor: name of the value in the logs that should improve; None for
            no `best`. A training value, such as "loss", is a mean over the
            steps of an epoch since the run was resumed.
        mode: "max" or "min".
        keep: int, number of the last states to keep; at least 1. States
            within an epoch do not count: the newest of them is kept until the
            next one is written.
        patience: int or None. Training ends after this number of epochs without
            improvement, counted across interruptions; 0 and None: never.
        save_every: float or None, minutes after which `last` is saved within
            an epoch.
        keep_best: int, number of the best weights to keep in `top`, see
            `kseq.runs.save_average`; 0 for no `top`. Of equal values the first
            is better.

    Raises:
        RunError: at the end of an epoch whose logs have no such value. `last`
            has been saved: the run resumes with the right name.
        ValueError: if an argument is invalid.
    """

    def __init__(
        self,
        run,
        *,
        monitor="val_bleu",
        mode="max",
        keep=5,
        patience=None,
        save_every=None,
        keep_best=0,
    ):
        super().__init__()
        check_choice("mode", mode, ("max", "min"))
        check_integers(keep=keep)
        check_integers(keep_best=keep_best, minimum=0)
        if patience is not None and not patience >= 0:
            raise ValueError(
                f"patience must be at least 0, or None. Received: {patience=}"
            )
        if patience and monitor is None:
            raise ValueError(
                f"patience needs monitor. Received: {patience=}, {monitor=}"
            )
        if save_every is not None and not save_every > 0:
            raise ValueError(
                f"save_every must be above 0, or None. Received: {save_every=}"
            )
        self.run = run
        self.monitor = monitor
        self.mode = mode
        self.keep = keep
        self.patience = patience or None
        self.save_every = save_every
        self.keep_best = keep_best
        self.validation = ()  # callbacks that validate, before this one

        self._best = -math.inf if mode == "max" else math.inf
        self._best_step = 0
        self._scores = {}  # of `top`: step -> value, higher for better ones
        self._step = 0
        self._last_step = sys.maxsize
        self._batches = None
        self._position = 0, 0  # a step, and the position in the data before it
        self._iterator = None
        self._saved_at = time.monotonic()
        self._saved_step = None  # before a validation that is not finished
        self._logs = {}  # of training, for this validation
        self._signal = 0
        self._handlers = {}

    def restore(self, model, batches, steps_per_epoch, steps=sys.maxsize):
        """Restores a compiled model to where its run stopped.

        Args:
            model: `keras.Model`, compiled.
            batches: `tf.data.Dataset`, from its start.
            steps_per_epoch: int, what `fit` will be given.
            steps: int, after which training ends, also within an epoch.

        Returns:
            `initial_epoch` for `fit`, and the batches that follow. The epoch is
            0 in a new run, and beyond any epoch in one that has reached its
            last step or run out of patience; while `needs_validation` it is
            not known yet whether it has.

        Raises:
            RunError: if all checkpoints are broken, or the newest one does not
                fit the model.
            ValueError: if the run was started but not saved.
        """
        self.run.check_saved()
        self._last_step = steps
        self._batches = batches
        directory = self.run.checkpoints / "last"
        newest = read_newest(directory)
        if newest is None:
            if checkpoint_paths(directory):
                raise RunError(f"{directory}: every checkpoint is broken.")
            return 0, batches

        path, tensors = newest
        if not model.optimizer.built:
            with model.distribute_strategy.scope():
                model.optimizer.build(model.trainable_variables)
        assign(path, model.variables, numbered(tensors, "vars"))
        assign(path, model.optimizer.variables, numbered(tensors, "opt"))
        self._step = model.steps_done = step_of(path)
        if bool(tensors.get(_BEFORE_VALIDATION, False)):
            is_validated = self._validated(self._step).is_file()
            self._saved_step = None if is_validated else self._step
        if _LOGS in tensors:
            self._logs = json.loads(tensors[_LOGS].numpy())

        directory = self.run.checkpoints / "best"
        best = read_newest(directory, "value")
        if best is not None:
            self._best_step = step_of(best[0])
            self._best = float(entry(*best, "value"))
        elif checkpoint_paths(directory):  # broken: the next one is the best
            self._best_step = self._step
        for path in checkpoint_paths(self.run.checkpoints / "top"):
            try:
                self._scores |= read_scores([path])
            except BrokenCheckpointError as error:
                _log.warning(f"Skipped: {error}")
        is_done = not self.needs_validation and (
            self.is_out_of_patience(steps_per_epoch)
        )
        if is_done or self._step >= steps:
            return sys.maxsize, batches
        if _POSITION in tensors:
            position = int(tensors[_POSITION])
        else:
            read = int(entry(path, tensors, "batches_read"))
            position = position_after(batches, 0, read)
        self._position = self._step, position
        return self._step // steps_per_epoch, starting_at(batches, position)

    @property
    def needs_validation(self):
        """Whether a run was killed in a validation, which `fit` repeats."""
        return self._saved_step is not None

    def on_train_begin(self, logs=None):
        if not self.params["steps"]:
            raise ValueError(_NEEDS_ONE_ITERATOR)
        self.run.check_saved()
        if self._step and is_chief():
            # A kill may have come between the last save and this. One within
            # an epoch must not count in an average.
            delete_others(self.run.checkpoints / "last", self._kept_steps())
        self._catch_signals()
        self._train = self.model.train_function
        self.model.train_function = self._train_with_one_iterator
        self._saved_at = time.monotonic()
        if self.needs_validation:
            print("Validating the last epoch.", file=sys.stderr)
            self.release_signals()
            logs = {**self._logs}
            epoch = (self._step - 1) // self.params["steps"]
            for callback in self.validation:
                callback.on_epoch_end(epoch, logs)
            self._end_validation(logs)

    def on_epoch_begin(self, epoch, logs=None):
        # Later than the epoch's own first step, where one is finished that
        # was stopped in the middle.
        self._start = max(self._step, epoch * self.params["steps"])
        end = (epoch + 1) * self.params["steps"]
        self._end = min(end, self._last_step)
        self._is_short = False

    def on_train_batch_end(self, batch, logs=None):
        self._step = self._start + batch + 1
        if self._step < self._end:
            number = self._signal_after(batch + 1)
            if number or self._is_due():
                self._read_steps()
                self._save_last()
            if number:
                self._stop(number)
            return
        self._read_steps()
        if batch + 1 < self.params["steps"] and not self.model.stop_training:
            # This ends the epoch; _end_short_epoch takes it back.
            self._is_short = self.model.stop_training = True

    def save_before_validation(self, logs):
        """Saves `last`, from which training resumes with the validation.

        Args:
            logs: dict, name -> float, of training, to which a validation that
                is repeated adds its scores.
        """
        self._end_short_epoch()
        self._validated(self._step).unlink(missing_ok=True)
        logs = {k: v for k, v in logs.items() if isinstance(v, float)}
        logs = tf.Variable(json.dumps(logs))
        self._save_last(before_validation=True, **{_LOGS: logs})
        self._saved_step = self._step
        if number := self._signal_of_any():
            self._stop(number)
        if num_machines() == 1:  # the others would wait for this one
            self.release_signals()

    def on_epoch_end(self, epoch, logs=None):
        self._end_short_epoch()
        self._end_validation(logs)

    def _end_short_epoch(self):
        # Before the validation, in which another callback may end training.
        if self._is_short:
            self._is_short = self.model.stop_training = False

    def _end_validation(self, logs):
        if not self._handlers:
            self._catch_signals()
        if self.monitor in logs:
            [value, *_] = on_all_machines(logs[self.monitor])
            self._save_if_in_top(value)
            self._save_if_best(value)
        if self._saved_step != self._step:
            self._save_last()
        elif is_chief():
            atomic_write(self._validated(self._step), b"")
        self._saved_step = None
        if self.monitor is not None and self.monitor not in logs:
            self._leave()
            raise RunError(
                f"monitor={self.monitor!r} is not measured. These are: "
                f"{', '.join(sorted(logs))}. Step {self._step} is saved in "
                f"{self.run.path}, where training resumes with one of them."
            )
        if number := self._signal_of_any():
            self._stop(number)
        if self.is_out_of_patience(self.params["steps"]):
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._leave()
        # One that came after the last epoch was saved.
        if number := self._signal_of_any():
            self._stop(number)

    def _leave(self):
        self.release_signals()
        self.model.train_function = self._train
        self._iterator = None

    def _read_steps(self):
        """Ends training before a checkpoint if a step has diverged."""
        if isinstance(self._train, TrainFunction):
            with self._left_on_error():
                self._train.read()

    @contextlib.contextmanager
    def _left_on_error(self):
        try:
            yield
        except Exception:  # ends `fit`, without another callback
            self._leave()
            raise

    def _validated(self, step):
        """A file that is there once a checkpoint has been validated."""
        return self.run.checkpoints / "last" / f"ckpt-{step}.validated"

    def _is_due(self):
        if self.save_every is None:
            return False
        return time.monotonic() - self._saved_at > 60 * self.save_every

    def _signal_after(self, steps):
        # To ask the others takes longer than a small step.
        if num_machines() > 1 and steps % READ_EVERY:
            return 0
        return self._signal_of_any()

    def _signal_of_any(self):
        return int(max(on_all_machines(self._signal)))

    def _save_if_in_top(self, value):
        score = value if self.mode == "max" else -value
        if not score > -math.inf:  # nan is not
            return
        scores = {**self._scores, self._step: score}
        steps = best_steps(scores, self.keep_best)
        if self._step not in steps:
            return
        self._scores = {step: scores[step] for step in steps}
        with ema_weights(self.model):
            score = tf.Variable(score, dtype=tf.float64)
            self._save("top", steps, score=score)

    def _save_if_best(self, value):
        if not self._is_better(value):
            return
        self._best = value
        self._best_step = self._step
        with ema_weights(self.model):
            best = tf.Variable(self._best, dtype=tf.float64)
            self._save("best", 1, value=best)

    def _is_better(self, value):
        return value > self._best if self.mode == "max" else value < self._best

    def is_out_of_patience(self, steps_per_epoch):
        """Whether the last validations were not better than one before.

        Args:
            steps_per_epoch: int, see `restore`.
        """
        if self.patience is None:
            return False
        return self._step - self._best_step >= self.patience * steps_per_epoch

    def _train_with_one_iterator(self, iterator):
        with self._left_on_error():
            if self._iterator is None:
                self._iterator = iterator
            elif iterator is not self._iterator:
                raise ValueError(_NEEDS_ONE_ITERATOR)
            return self._train(iterator)

    def _save_last(self, before_validation=False, **more):
        step, position = self._position
        position = position_after(self._batches, position, self._step - step)
        self._position = self._step, position
        state = {
            "opt": _values(self.model.optimizer.variables),
            _POSITION: tf.Variable(position, dtype=tf.int64),
            _BEFORE_VALIDATION: tf.Variable(before_validation),
            **more,
        }
        self._save("last", self._kept_steps(), **state)
        self._saved_at = time.monotonic()

    def _kept_steps(self):
        """Steps of the checkpoints in `last` that stay when one is saved."""
        paths = checkpoint_paths(self.run.checkpoints / "last")
        steps = sorted({*map(step_of, paths), self._step})
        ends = [
            step
            for step in steps
            if step % self.params["steps"] == 0 or step == self._last_step
        ]
        return [*ends[-self.keep :], self._step]

    def _save(self, name, keep, **more):
        if not is_chief():
            return
        weights = _values(self.model.variables)
        directory = self.run.checkpoints / name
        with below_keras_bar(), progress("Saving a checkpoint"):
            write_checkpoint(directory, self._step, keep, vars=weights, **more)

    def _catch_signals(self):
        if threading.current_thread() is threading.main_thread():
            self._handlers = {
                number: signal.signal(number, self._ask_to_stop)
                for number in stop_signals()
            }
            if number := take_over():  # it came when `fit` had been called
                self._ask_to_stop(number, None)

    def release_signals(self):
        """Restores the handlers of signals; also after an error in `fit`."""
        while self._handlers:
            signal.signal(*self._handlers.popitem())

    def _ask_to_stop(self, number, frame):
        if self._signal:
            return
        self._signal = number
        # SIGHUP may come twice, or right after SIGTERM: it stays.
        kept = self._handlers.pop(signal.SIGHUP, None)
        self.release_signals()
        if kept is not None:
            self._handlers[signal.SIGHUP] = kept
        discard_lost_output()
        # Not print, which must not be entered twice.
        after_control_c = b"\n" * os.isatty(2)
        message = b"Stopping as soon as all is saved. Once more: at once.\n"
        with contextlib.suppress(OSError):
            os.write(2, after_control_c + message)

    def _stop(self, number):
        self._leave()
        with contextlib.suppress(OSError):
            print(
                f"Stopped after step {self._step}, which is saved in "
                f"{self.run.path}. The same command resumes from there.",
                file=sys.stderr,
            )
        raise SystemExit(128 + number)


def _values(variables):
    return [variable.value for variable in variables]
