"""A training of a second, with all that a checkpoint has to hold."""

import dataclasses

import keras
import tensorflow as tf

from kseq.data.files.dataset_options import disable_autotuning
from kseq.runs import RunDirectory
from kseq.training import Checkpoints

STEPS = 5  # an epoch


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 3
    batch_size: int = 4


def make_model(ema=True, run_eagerly=True):
    """Tracing a step would take longer than the steps of most tests.

    Each variable has a time of its own in a step: it has no biases.
    """
    keras.utils.set_random_seed(3)
    inputs = keras.Input((8,), name="inputs")
    x = keras.layers.Dense(8, use_bias=False, name="hidden")(inputs)
    x = keras.layers.Dropout(0.5, name="dropout")(x)
    outputs = keras.layers.Dense(1, use_bias=False, name="outputs")(x)
    model = keras.Model(inputs, outputs, name="tiny")
    adam = keras.optimizers.Adam(0.01, use_ema=ema)
    model.compile(adam, "mse", run_eagerly=run_eagerly, jit_compile=False)
    return model


def make_data(batch_size=4, shuffled=True):
    def example(number):
        return tf.one_hot(number % 8, 8), tf.cast(number % 3, tf.float32)

    numbers = tf.data.Dataset.range(64)
    if shuffled:
        numbers = numbers.shuffle(32, seed=3)
    batches = numbers.repeat().map(example).batch(batch_size).prefetch(2)
    return disable_autotuning(batches)


def train(
    path,
    epochs,
    callbacks=(),
    data=None,
    model=None,
    batch_size=4,
    steps=STEPS,
    **settings,
):
    """Trains in a run directory, or resumes there."""
    run = RunDirectory(path)
    run.start(Config(batch_size=batch_size), ("batch_size",))
    model = model or make_model()
    run.save_model(model)
    settings = {"monitor": "loss", "mode": "min", **settings}
    checkpoints = Checkpoints(run, **settings)
    first, batches = checkpoints.restore(
        model, data or make_data(batch_size), steps
    )
    try:
        model.fit(
            batches,
            steps_per_epoch=steps,
            epochs=epochs,
            initial_epoch=first,
            callbacks=[*callbacks, checkpoints],
            shuffle=False,
            verbose=0,
        )
    finally:
        checkpoints.release_signals()  # after what tests raise
    return model
