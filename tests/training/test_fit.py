import signal

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator,
)

from kseq import devices, training
from kseq.runs import RunDirectory
from tests.training.test_validation import Evaluation
from tests.training.tiny_training import STEPS, Config, make_data, make_model


def started(path):
    run = RunDirectory(path)
    run.start(Config(), ("batch_size",))
    run.save_model(make_model())
    return run


def checkpoints_of(path):
    return training.Checkpoints(started(path), monitor="loss", mode="min")


def fitted(path, steps, *callbacks):
    model = make_model()
    training.fit(
        model,
        make_data(),
        checkpoints_of(path),
        steps=steps,
        steps_per_epoch=STEPS,
        callbacks=callbacks,
    )
    return model


def assert_same_weights(model, other):
    for one, two in zip(model.variables, other.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_plain_fit_with_the_same_callbacks_gives_the_same_bits(tmp_path):
    model = make_model()
    checkpoints = checkpoints_of(tmp_path / "plain")
    log = training.MetricsLog(checkpoints.run, 2 * STEPS)
    model.fit(
        make_data(),
        steps_per_epoch=STEPS,
        epochs=2,
        callbacks=[log, checkpoints],
        shuffle=False,
        verbose=0,
    )
    other = fitted(tmp_path / "run", 2 * STEPS)
    assert_same_weights(other, model)


def test_resumes(tmp_path, capfd):
    fitted(tmp_path / "run", STEPS)
    resumed = fitted(tmp_path / "run", 2 * STEPS)
    assert_same_weights(resumed, fitted(tmp_path / "whole", 2 * STEPS))
    assert "\b" not in capfd.readouterr().out  # no progress bar in a pipe


def test_the_same_command_again_trains_nothing(tmp_path):
    model = fitted(tmp_path, STEPS)
    again = fitted(tmp_path, STEPS)
    assert_same_weights(again, model)
    assert again.optimizer.iterations == STEPS


def test_the_last_epoch_may_be_short(tmp_path):
    for steps in (STEPS - 2, STEPS + 2, STEPS + 2):
        resumed = fitted(tmp_path / "run", steps)
        assert resumed.optimizer.iterations == steps
        last = tmp_path / "run" / "checkpoints" / "last"
        assert (last / f"ckpt-{steps}.sha256").is_file()
    whole = fitted(tmp_path / "whole", STEPS + 2)
    assert_same_weights(resumed, whole)


def test_callbacks_come_before_the_checkpoints(tmp_path):
    """What they add to the logs decides on the best epoch."""

    class Add(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["val_score"] = -epoch

    run = started(tmp_path)
    training.fit(
        make_model(),
        make_data(),
        training.Checkpoints(run, monitor="val_score"),
        steps=2 * STEPS,
        steps_per_epoch=STEPS,
        callbacks=[Add()],
    )
    [best] = (run.checkpoints / "best").glob("*.sha256")
    assert best.stem == f"ckpt-{STEPS}"
    assert '"val_score": -1' in run.metrics.read_text()


def test_an_error_of_a_callback_leaves_no_handlers(tmp_path, sighup):
    def fail(*_, **logs):
        raise KeyError("score")

    numbers = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
    before = list(map(signal.getsignal, numbers))
    for failing in ("on_epoch_end", "on_train_batch_end"):
        callback = keras.callbacks.LambdaCallback(**{failing: fail})
        with pytest.raises(KeyError):
            fitted(tmp_path / failing, STEPS, callback)
        assert list(map(signal.getsignal, numbers)) == before


class Stop(keras.callbacks.Callback):
    """Ends training with the first epoch, for a reason of its own."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = True


@pytest.mark.parametrize("steps", [STEPS, STEPS - 2])
def test_a_callback_may_end_training_in_an_epoch_that_was_resumed(
    tmp_path, steps
):
    fitted(tmp_path, steps)
    if steps == STEPS:  # a run that was killed in its validation
        last = tmp_path / "checkpoints" / "last"
        (last / f"ckpt-{STEPS}.validated").unlink()
    model = fitted(tmp_path, 3 * STEPS, Stop())
    assert model.optimizer.iterations == STEPS


def test_other_processes_than_the_chief_end_here(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "is_chief", lambda: False)
    with pytest.raises(SystemExit) as stop:
        fitted(tmp_path, STEPS)
    assert stop.value.code == 0


def test_a_model_outside_of_the_scope_is_refused(
    tmp_path, monkeypatch, two_devices
):
    monkeypatch.setattr(devices, "device_strategy", lambda: two_devices)
    with pytest.raises(ValueError, match="scope"):
        fitted(tmp_path, STEPS)
    assert tf.distribute.get_strategy() is not two_devices


def test_one_event_file_for_training_and_one_for_validation(tmp_path):
    run = started(tmp_path)
    model = make_model()
    training.fit(
        model,
        make_data(),
        training.Checkpoints(run, monitor="val_weight"),
        steps=3 * STEPS,
        steps_per_epoch=STEPS,
        callbacks=[training.Validation(run, Evaluation(model))],
    )
    parts = sorted(path.parent.name for path in run.tensorboard.glob("*/*"))
    assert parts == ["train", "validation"]
    events = EventAccumulator(str(run.tensorboard / "validation"))
    events.Reload()
    for tag in ("weight", "best/weight", "samples", "part/0"):
        steps = [event.step for event in events.Tensors(tag)]
        assert steps == [STEPS, 2 * STEPS, 3 * STEPS], tag


def test_the_run_has_a_readme(tmp_path):
    run = started(tmp_path / "small")
    model = make_model()
    evaluation = Evaluation(model)
    training.fit(
        model,
        make_data(),
        training.Checkpoints(run, monitor="val_weight", mode="min"),
        steps=2 * STEPS,
        steps_per_epoch=STEPS,
        callbacks=[training.Validation(run, evaluation)],
        facts=["64 numbers"],
    )
    card = run.readme.read_text()
    assert card.startswith("# small\n")
    assert f"{2 * STEPS} of {2 * STEPS} steps" in card
    assert "| weight | " in card
    assert "| in all |" in card
    assert "    64 numbers\n" in card
