"""What has been trained is saved before it is validated, and in between."""

import os
import signal

import keras
import numpy as np
import pytest

from kseq import training
from kseq.data.files.stream_positions import numbered_batches
from kseq.files.recorded_metrics import is_validation, recorded_metrics
from kseq.runs import RunDirectory, save_average
from kseq.runs.checkpoint_files import numbered, read_newest
from tests.slow import slow
from tests.training.test_checkpoints import steps
from tests.training.test_compile_shapes import batch, make_model
from tests.training.test_metrics_log import events
from tests.training.tiny_training import Config

PER_EPOCH = 3


class Scores(keras.callbacks.Callback):
    """A validation that may be interrupted."""

    def __init__(self, interrupt=None, at=None):
        super().__init__()
        self.interrupt = interrupt
        self.at = at
        self.epochs = []

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.at:
            self.interrupt()
        self.epochs.append(epoch)
        logs["val_score"] = float(epoch)


def fit(path, scores, epochs=3, monitor="val_score", **options):
    run = RunDirectory(path)
    run.start(Config(), ("batch_size",))
    # Tracing would take longer than the steps.
    model = make_model(jit_compile=False, run_eagerly=True, ema=True)
    run.save_model(model)
    training.fit(
        model,
        numbered_batches(lambda number: batch(2, 3)),
        training.Checkpoints(run, monitor=monitor, **options),
        steps=round(PER_EPOCH * epochs),
        steps_per_epoch=PER_EPOCH,
        callbacks=[scores],
    )


def test_what_training_measures_may_be_monitored(tmp_path):
    """It is in the logs of a validation that is repeated, too."""

    def kill():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "cut", Scores(kill, 0), monitor="loss")
    for name in ("cut", "whole"):
        fit(tmp_path / name, Scores(), epochs=1, monitor="loss")
    (_, one), (_, other) = (
        read_newest(tmp_path / name / "checkpoints" / "best")
        for name in ("cut", "whole")
    )
    assert one["value"].numpy() == other["value"].numpy()


def weights_in(path, name):
    found, tensors = read_newest(path / "checkpoints" / name)
    return found, [x.numpy() for x in numbered(tensors, "vars")]


@pytest.mark.parametrize("at", [0, slow(1), 2])
def test_a_validation_that_was_killed_is_done_first(tmp_path, capfd, at):
    class KilledError(BaseException):
        pass

    def kill():
        raise KilledError

    fit(tmp_path / "whole", Scores())
    with pytest.raises(KilledError):
        fit(tmp_path / "cut", Scores(kill, at))
    assert steps(tmp_path / "cut")[-1] == PER_EPOCH * (at + 1)

    scores = Scores()
    fit(tmp_path / "cut", scores)
    assert scores.epochs == list(range(at, 3))
    assert "Validating the last epoch" in capfd.readouterr().err
    for name in ("last", "best"):
        (one, values), (other, expected) = (
            weights_in(tmp_path / kind, name) for kind in ("cut", "whole")
        )
        assert os.path.basename(one) == os.path.basename(other)
        for value, same in zip(values, expected, strict=True):
            np.testing.assert_array_equal(value, same)

    again = Scores()
    fit(tmp_path / "cut", again)
    assert again.epochs == []


def test_a_validation_that_is_repeated_is_recorded_once(tmp_path, monkeypatch):
    """It was killed when its scores were written, but not its best weights."""

    class KilledError(BaseException):
        pass

    def kill(self, value):
        raise KilledError

    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr(training.Checkpoints, "_save_if_best", kill)
        fit(tmp_path, Scores())
    fit(tmp_path, Scores(), epochs=2)
    run = RunDirectory(tmp_path)
    rows = filter(is_validation, recorded_metrics(run.metrics))
    assert [row["step"] for row in rows] == [PER_EPOCH, 2 * PER_EPOCH]
    scores = events(tmp_path, "validation").Tensors("score")
    shown = [event.step for event in scores]
    assert shown == [PER_EPOCH, 2 * PER_EPOCH]


def test_a_signal_ends_a_validation_at_once(tmp_path, monkeypatch):
    """By the handler of the process, which knows where that is safe."""

    class StoppedError(BaseException):
        pass

    def handler(*_):
        raise StoppedError

    before = signal.signal(signal.SIGTERM, handler)
    try:
        scores = Scores(lambda: os.kill(os.getpid(), signal.SIGTERM), at=1)
        with pytest.raises(StoppedError):
            fit(tmp_path, scores)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert scores.epochs == [0]
    assert steps(tmp_path)[-1] == 2 * PER_EPOCH


def test_a_signal_in_the_last_step_waits_for_no_validation(tmp_path):
    class Signal(Scores):
        def on_train_batch_end(self, batch, logs=None):
            if batch + 1 == PER_EPOCH:
                os.kill(os.getpid(), signal.SIGTERM)

    scores = Signal()
    with pytest.raises(SystemExit) as stopped:
        fit(tmp_path, scores)
    assert stopped.value.code == 143
    assert scores.epochs == []
    assert steps(tmp_path) == [PER_EPOCH]
    resumed = Scores()
    fit(tmp_path, resumed)
    assert resumed.epochs == [0, 1, 2]


class Steps(Scores):
    """Remembers what is saved when an epoch begins and ends."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self.seen.append(steps(self.path))

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == PER_EPOCH:
            self.seen.append(steps(self.path))


def test_within_an_epoch(tmp_path):
    """The newest state besides those of the ends of epochs, for an average."""
    saved = Steps(tmp_path)
    fit(tmp_path, saved, epochs=3, save_every=1e-9, keep=2)
    assert saved.seen == [[2], [3], [3, 5], [3, 6], [3, 6, 8], [6, 9]]


def test_a_stop_within_an_epoch_changes_no_average(tmp_path):
    """Nor does the last step of a training that was shorter than this one."""

    class Signal(Scores):
        def on_train_batch_end(self, batch, logs=None):
            if batch + 1 == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    fit(tmp_path / "whole", Scores(), keep=2)
    for _ in range(2):
        with pytest.raises(SystemExit):
            fit(tmp_path / "cut", Signal(), keep=2)
    fit(tmp_path / "cut", Scores(), epochs=5 / 3, keep=2)
    assert steps(tmp_path / "cut") == [3, 5]
    fit(tmp_path / "cut", Scores(), keep=2)
    assert steps(tmp_path / "cut") == [6, 9]
    averages = []
    for kind in ("whole", "cut"):
        save_average(RunDirectory(tmp_path / kind), 2)
        averages.append(weights_in(tmp_path / kind, "average")[1])
    for value, same in zip(*averages, strict=True):
        np.testing.assert_array_equal(value, same)


class Losses(Scores):
    """Validations whose scores get worse from the third on."""

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        logs["val_score"] = [1.0, 2.0, 3.0, 0.0, 0.0][epoch]


@pytest.mark.parametrize("at", [1, 3])
def test_patience_knows_the_validation_that_was_killed(tmp_path, at):
    """Whether it is better than all before, or the last bad one."""

    class KilledError(BaseException):
        pass

    def kill():
        raise KilledError

    options = {"epochs": 5, "patience": 1, "keep": 9}
    fit(tmp_path / "whole", Losses(), **options)
    assert steps(tmp_path / "whole") == [3, 6, 9, 12]
    with pytest.raises(KilledError):
        fit(tmp_path / "cut", Losses(kill, at), **options)
    resumed = Losses()
    fit(tmp_path / "cut", resumed, **options)
    assert resumed.epochs == [*range(at, 4)]
    for name in ("last", "best"):
        assert steps(tmp_path / "cut", name) == steps(tmp_path / "whole", name)


def test_not_within_an_epoch(tmp_path):
    fit(tmp_path, Scores(), epochs=2, save_every=9.0, keep=9)
    assert steps(tmp_path) == [3, 6]


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_absurd_intervals_are_refused(tmp_path, value):
    with pytest.raises(ValueError, match="save_every must be above 0"):
        training.Checkpoints(RunDirectory(tmp_path), save_every=value)
