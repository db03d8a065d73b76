"""What has been trained is saved before it is validated, and in between."""

import os
import signal

import keras
import numpy as np
import pytest

from kseq import training
from kseq.data.files.stream_positions import numbered_batches
from kseq.runs import RunDirectory
from kseq.runs.checkpoint_files import numbered, read_newest
from tests.slow import slow
from tests.training.test_checkpoints import steps
from tests.training.test_compile_shapes import batch, make_model
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


def fit(path, scores, epochs=3, **options):
    run = RunDirectory(path)
    run.start(Config(), ("batch_size",))
    # Tracing would take longer than the steps.
    model = make_model(jit_compile=False, run_eagerly=True)
    run.save_model(model)
    training.fit(
        model,
        numbered_batches(lambda number: batch(2, 3)),
        training.Checkpoints(run, monitor="val_score", **options),
        steps=PER_EPOCH * epochs,
        steps_per_epoch=PER_EPOCH,
        callbacks=[scores],
    )


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


def test_within_an_epoch(tmp_path):
    fit(tmp_path, Scores(), epochs=1, save_every=1e-9, keep=9)
    assert steps(tmp_path) == [1, 2, 3]


def test_not_within_an_epoch(tmp_path):
    fit(tmp_path, Scores(), epochs=2, save_every=9.0, keep=9)
    assert steps(tmp_path) == [3, 6]


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_absurd_intervals_are_refused(tmp_path, value):
    with pytest.raises(ValueError, match="save_every must be above 0"):
        training.Checkpoints(RunDirectory(tmp_path), save_every=value)
