"""Every part of the state of training outlives a stop, in combination."""

import dataclasses
import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq import devices, training
from kseq.command_line import option_types as options
from kseq.data.files.stream_positions import numbered_batches
from kseq.layers import Dropout
from kseq.models import ExactModel
from kseq.runs import RunDirectory, save_average
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    read_checkpoint,
    step_of,
)
from tests.slow import slow

STEPS, PER_EPOCH = 5, 3


@dataclasses.dataclass(frozen=True)
class Config(options.FineTuningOptions, options.LossOptions):
    run: str = ""
    steps: int = STEPS
    learning_rate: float = 0.01
    warmup_steps: int = 2
    dtype: str = "float32"
    jit_compile: bool = False


class Stop(keras.callbacks.Callback):
    """Asks the process to end after a step of this process."""

    def __init__(self, after):
        super().__init__()
        self.steps_left = after

    def on_train_batch_end(self, batch, logs=None):
        self.steps_left -= 1
        if self.steps_left == 0:
            os.kill(os.getpid(), signal.SIGTERM)


class Score(keras.callbacks.Callback):
    """Validates by a number that depends on all weights."""

    def on_epoch_end(self, epoch, logs=None):
        sizes = [np.abs(weight).sum() for weight in self.model.get_weights()]
        logs["val_score"] = float(np.sum(sizes))


def make_model(config):
    keras.utils.set_random_seed(config.seed)
    inputs = keras.Input((8,), name="inputs")
    x = keras.layers.Dense(9, dtype=config.dtype, name="hidden")(inputs)
    x = Dropout(0.4, dtype=config.dtype, name="dropout")(x)
    outputs = keras.layers.Dense(6, dtype=config.dtype, name="outputs")(x)
    model = ExactModel(inputs, outputs, dtype=config.dtype, name="tiny")
    training.freeze(model, (), config.lora)
    model.compile(
        training.build_optimizer(config),
        # Tracing would take longer than the steps.
        run_eagerly=model.distribute_strategy.num_replicas_in_sync == 1,
        **config.compile_arguments(),
    )
    return model


def batch(number):
    key = tf.stack([number, 0])
    rows = tf.random.stateless_normal((7, 8), key)
    rows *= 10.0 ** tf.cast(3 * (number % 2), tf.float32)  # float16 overflows
    return rows, tf.argmax(rows[:, :6], axis=1, output_type=tf.int32)


def train(config, *callbacks):
    run = RunDirectory(config.run)
    run.start(config)
    with devices.device_strategy().scope():
        model = make_model(config)
    run.save_model(model)
    training.fit(
        model,
        numbered_batches(batch),
        training.Checkpoints(
            run,
            monitor="val_score",
            keep=2,
            keep_best=2,
            **config.checkpoint_arguments(),
        ),
        steps=config.steps,
        steps_per_epoch=PER_EPOCH,
        callbacks=[Score(), *callbacks],
    )
    save_average(run, 2)
    return model, {
        f"{folder.name} {step_of(path)} {name}": value.numpy()
        for folder in run.checkpoints.iterdir()
        for path in checkpoint_paths(folder)
        for name, value in read_checkpoint(path).items()
        if not name.startswith(("_", "logs"))
    }


@pytest.mark.parametrize(
    "chosen",
    [
        {
            "dtype": "mixed_float16",
            "ema": 0.9,
            "lora": 2,
            "r_drop": 1.0,
            "schedule": "cosine",
            "save_every": 1e-9,
        },
        slow({"optimizer": "adafactor", "accumulation_steps": 9}),
        slow({"optimizer": "lion", "weight_decay": 0.1, "ema": 0.0}),
    ],
)
@pytest.mark.parametrize("count", [1, slow(2)])
def test_a_training_that_is_stopped_twice(
    tmp_path, monkeypatch, two_devices, chosen, count
):
    if count == 2:
        monkeypatch.setattr(devices, "device_strategy", lambda: two_devices)
    whole, cut = (
        Config(run=str(tmp_path / name), **chosen) for name in ("whole", "cut")
    )
    for after in (2, 1):  # within an epoch, and at its end
        with pytest.raises(SystemExit):
            train(cut, Stop(after))
    (model, found), (expected, states) = train(cut), train(whole)
    for one, other in zip(model.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert found.keys() == states.keys()
    for name, value in states.items():
        np.testing.assert_array_equal(found[name], value, name)
