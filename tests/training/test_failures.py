import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.models import FlatAttention, TransformerLM, step_function
from kseq.models.training_errors import DivergedError
from kseq.runs import RunDirectory
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_newest,
    step_of,
)
from kseq.training import Checkpoints, MetricsLog
from kseq.training.optimizer import global_step
from tests.models.one_by_one import one_by_one
from tests.models.test_exact_model import batches, same_start, tiny_model
from tests.training.test_checkpoints import Signal
from tests.training.tiny_training import Config

_TOLD_TENSORFLOW = ("CUDA_VISIBLE_DEVICES", "TF_CPP_MIN_LOG_LEVEL")


def poisoned(inputs, labels, weights):
    return inputs, labels, weights * np.float32("nan")


def fit(model, batch):
    model.fit(one_by_one([batch]), shuffle=False, verbose=0)


def is_finite(directory):
    _, tensors = read_newest(directory)
    values = numbered(tensors, "vars") + numbered(tensors, "opt")
    return all(np.isfinite(value).all() for value in values)


def test_an_update_that_diverges_is_skipped():
    model = same_start(tiny_model())
    model.compile(keras.optimizers.SGD(0.25))
    [batch] = batches([5])
    fit(model, batch)
    weights = model.get_weights()
    with pytest.raises(DivergedError) as stopped:
        fit(model, poisoned(*batch))
    message = str(stopped.value)
    assert stopped.value.exit_code == 3
    assert "at step 2: loss nan, gradient norm nan, learning rate 0.25" in (
        message
    )
    assert 'the gradient of "' in message
    assert model.optimizer.iterations == 1
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_skipped_updates_are_steps(tmp_path):
    """All count them alike: checkpoints, metrics, samples and messages."""
    run = RunDirectory(tmp_path)
    run.start(Config())
    model = same_start(tiny_model("mixed_float16"))
    # Scaled so much, the first gradients overflow.
    model.compile(
        keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(0.1), initial_scale=2.0**40
        ),
        run_eagerly=True,
    )
    run.save_model(model)
    [good] = batches([4])
    bad = poisoned(*good)
    checkpoints = Checkpoints(run, monitor="loss", mode="min")
    with pytest.raises(DivergedError, match="at step 7: "):
        model.fit(
            one_by_one([good] * 6 + [bad]),
            steps_per_epoch=2,
            epochs=4,
            callbacks=[MetricsLog(run, 8, every=2), checkpoints],
            shuffle=False,
            verbose=0,
        )
    updates = int(model.optimizer.iterations)
    assert updates < model.steps_done == 6

    last = checkpoint_paths(run.checkpoints / "last")
    assert [step_of(path) for path in last] == [2, 4, 6]
    lines = run.metrics.read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 4, 6]

    # And after a resume.
    again = tiny_model("mixed_float16")
    again.compile(
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    )
    data = tf.data.Dataset.range(9)
    assert Checkpoints(run, monitor="loss").restore(again, data, 2)[0] == 3
    assert global_step(again) == 6 and again.optimizer.iterations == updates


@pytest.mark.parametrize("devices", [1, 2])
def test_the_first_layer_is_named(devices, two_devices):
    """Also if it is on the second device only."""
    [batch] = batches([6])
    inputs, labels, weights = batch
    inputs["ids"][0, 0] = 7
    inputs["ids"][1:, :] = np.minimum(inputs["ids"][1:, :], 6)
    inputs["ids"][-1, 0] = 8
    with two_devices.scope() if devices == 2 else contextlib.nullcontext():
        model = same_start(tiny_model())
        model.compile(keras.optimizers.SGD(0.25))
    table = model.layers[1].embeddings
    values = table.numpy()
    values[8] = np.inf
    table.assign(values)
    with pytest.raises(DivergedError, match='not finite is that of "embedding'):
        fit(model, (inputs, labels, weights))


def language_model():
    """Its training has no prompts."""
    model = TransformerLM(
        9, num_layers=1, model_dim=4, ffn_dim=4, num_heads=2, tie_output=False
    )
    ids = np.array([[2, 5, 6]], np.int32)
    return model, ({"target_ids": ids}, ids, np.ones((1, 3), np.float32))


def pretraining():
    """Its layers are those of a classifier, too."""
    classifier = FlatAttention(
        9, 2, embedding_dim=4, units=3, attention_units=3
    )
    inputs = {
        "source_ids": np.array([[4, 5, 6, 7]], np.int32),
        "candidates": np.array([[8]], np.int32),
    }
    zeros = np.zeros((1, 2, 2), np.int32)
    return classifier.piece_prediction(), (inputs, zeros, zeros + 1.0)


@pytest.mark.parametrize("make", [language_model, pretraining])
def test_the_first_layer_is_named_of_every_model(make):
    model, batch = make()
    model.compile("sgd", run_eagerly=True)
    table = model.get_layer("embedding").trainable_variables[0]
    table.assign(np.full(table.shape, np.inf))
    with pytest.raises(DivergedError, match='not finite is that of "embedding'):
        fit(model, batch)


def test_float16_may_overflow():
    """The optimizer lowers its scale, and skips the update."""
    keras.config.set_dtype_policy("mixed_float16")
    model = same_start(tiny_model("mixed_float16"))
    # Tracing would take longer than the step.
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    model.optimizer.dynamic_scale.assign(2.0**40)
    [batch] = batches([5])
    fit(model, batch)
    assert float(model.optimizer.dynamic_scale) == 2.0**39


@pytest.mark.parametrize("is_late", [False, True])
def test_what_was_saved_is_finite(is_late, tmp_path, monkeypatch):
    """Also where the host reads the results of steps later, as of a GPU."""
    monkeypatch.setattr(step_function, "has_gpu", lambda: is_late)
    before = signal.getsignal(signal.SIGTERM)
    [good] = batches([4])
    bad = poisoned(*good)
    run = RunDirectory(tmp_path)
    run.start(Config())
    run.save_model(tiny_model())

    data = one_by_one([good] * 5 + [bad] * 5).repeat()
    model = same_start(tiny_model())
    model.compile(keras.optimizers.Adam(0.1, use_ema=True))
    with pytest.raises(DivergedError, match="at step 6"):
        model.fit(
            data,
            steps_per_epoch=2,
            epochs=5,
            callbacks=[Checkpoints(run, monitor="loss", mode="min")],
            shuffle=False,
            verbose=0,
        )
    assert is_finite(run.checkpoints / "last")
    assert is_finite(run.checkpoints / "best")
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_after_a_step_that_diverged(tmp_path, monkeypatch):
    """Nothing is saved of steps that have not been read."""
    monkeypatch.setattr(step_function, "has_gpu", lambda: True)
    [good] = batches([4])
    run = RunDirectory(tmp_path)
    run.start(Config())
    model = same_start(tiny_model())
    model.compile(keras.optimizers.SGD(0.1))
    run.save_model(model)
    with pytest.raises(DivergedError, match="at step 2"):
        model.fit(
            one_by_one([good, poisoned(*good), good, good]).repeat(),
            steps_per_epoch=4,
            callbacks=[
                Signal(3, signal.SIGTERM),
                Checkpoints(run, monitor="loss", mode="min"),
            ],
            shuffle=False,
            verbose=0,
        )
    assert not checkpoint_paths(run.checkpoints / "last")
    assert model.steps_done == model.optimizer.iterations == 1


@pytest.mark.slow
def test_a_step_without_memory(tmp_path):
    """Exit code 4, shape and option; checkpoints are intact.

    Nor does TensorFlow say anything else, as it would where no GPU is found.
    """
    script = Path(__file__).with_name("limited_memory.py")
    ended = subprocess.run(
        [sys.executable, script, tmp_path],
        capture_output=True,
        env={
            **{
                k: v for k, v in os.environ.items() if k not in _TOLD_TENSORFLOW
            },
            # As if the machine had no more.
            "TF_CPU_BFC_MEM_LIMIT_IN_MB": "256",
        },
        text=True,
        timeout=120,
    )
    assert ended.returncode == 4, ended.stderr
    [message] = ended.stderr.splitlines()
    assert "Out of memory at step 3, with a batch of ids (4096, 512)" in message
    assert "--accumulation-steps 2, or compile(accumulation_steps=2)" in message
    assert "--batch-tokens is 2097152" in message
    assert read_newest(tmp_path / "checkpoints" / "last")[0].endswith("-2")
