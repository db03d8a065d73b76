"""Steps that are not finite change nothing, also if they are noticed later."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.layers import Dropout
from kseq.models import ExactModel, step_function
from kseq.models.exact_model import TokenLosses
from kseq.models.training_errors import DivergedError
from kseq.user_error import ArgumentError
from tests.models.one_by_one import one_by_one
from tests.models.test_exact_model import VOCAB, batches, same_start
from tests.slow import slow

GOOD, *MORE = batches([4] * 5)
BAD = (*GOOD[:2], GOOD[2] * np.float32("nan"))


def model_with_dropout():
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = keras.layers.Embedding(VOCAB, 8, name="embedding")(ids)
    x = Dropout(0.3, seed=5, name="dropout")(x)
    logits = keras.layers.Dense(VOCAB, name="logits")(x)
    return same_start(
        ExactModel(inputs={"ids": ids}, outputs=logits, name="small")
    )


def compiled(**settings):
    model = model_with_dropout()
    adam = keras.optimizers.Adam(0.05, use_ema=True, name="adam")
    model.compile(adam, clip_norm=1.0, **settings)
    return model


def fit(model, data, **options):
    history = model.fit(
        one_by_one(data), shuffle=False, verbose=0, **options
    ).history
    return {name: values[-1] for name, values in history.items()}


def state(model):
    """All that a checkpoint has, and the metrics."""
    variables = (*model.variables, *model.optimizer.variables)
    return [
        *map(keras.ops.convert_to_numpy, variables),
        *(np.array(m.result()) for m in model.metrics),
        model.steps_done,
    ]


def assert_same(model, expected):
    for one, other in zip(state(model), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def late(monkeypatch):
    """Results are read as on a GPU."""
    monkeypatch.setattr(step_function, "has_gpu", lambda: True)


@pytest.mark.parametrize(
    ("devices", "jit_compile"),
    [slow(1, False), (1, True), (2, False), slow(2, True)],
)
def test_nothing_changes_until_it_is_noticed(
    devices, jit_compile, two_devices, late
):
    """To the bit: weights, averages, counters, seeds and metrics."""
    states = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: states.append(state(model))
    )
    scope = two_devices.scope if devices == 2 else contextlib.nullcontext
    with scope():
        model = compiled(jit_compile=jit_compile)
    with pytest.raises(DivergedError) as stopped:
        fit(model, [GOOD, *MORE[:2], BAD, *MORE], callbacks=[keep])
    assert model.steps_done == states[2][-1] == 3
    assert_same(model, states[2])
    message = str(stopped.value)
    assert "at step 4: loss nan, gradient norm nan, learning rate 0.05" in (
        message
    )

    # What comes next is a step like any other.
    fit(model, [GOOD])
    assert model.steps_done == model.optimizer.iterations == 4


def test_steps_that_keras_has_restored_are_counted(tmp_path):
    counts = []

    def keep(batch, logs):
        counts.append(model.steps_done)
        if len(counts) == 5:
            raise KeyboardInterrupt

    keep = keras.callbacks.LambdaCallback(on_train_batch_end=keep)
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    model = compiled()
    with pytest.raises(KeyboardInterrupt):
        fit(model, [GOOD, GOOD], epochs=3, callbacks=[backup, keep])
    model = compiled()
    fit(model, [GOOD, GOOD], epochs=3, callbacks=[backup, keep])
    assert counts == [1, 2, 3, 4, 5, 5, 6]
    assert model.steps_done == model.optimizer.iterations == 6


@pytest.mark.parametrize("jit_compile", [False, slow(True)])
def test_a_shape_is_compiled_by_a_step_that_changes_nothing(jit_compile, late):
    model = compiled(jit_compile=jit_compile)
    data = one_by_one([GOOD, *MORE])
    spec = iter(data).element_spec
    before = state(model)
    model.make_train_function()
    for batch in data:
        model.train_function.compile_shape(batch, spec)
    assert_same(model, before)

    logs = fit(model, [GOOD, *MORE])
    [(_, function)] = model.train_function._compiled
    assert function.experimental_get_tracing_count() == 1
    assert logs == fit(compiled(jit_compile=jit_compile), [GOOD, *MORE])


class Regression(ExactModel):
    """Reports fewer metrics than there are."""

    def token_losses(self, inputs, labels, outputs, *_):
        return TokenLosses(keras.ops.square(labels - outputs))


def regression():
    inputs = keras.Input((3,))
    model = Regression(inputs, keras.layers.Dense(2)(inputs))
    model.compile(keras.optimizers.SGD(0.1))
    return same_start(model)


@pytest.mark.parametrize("make", [compiled, regression])
def test_logs_of_epochs_are_exact(make, monkeypatch):
    draw = np.random.default_rng(0)
    data = [GOOD, *MORE, GOOD]
    if make is regression:
        draws = [draw.normal(size=(4, 3)).astype("float32") for _ in range(6)]
        data = [(x, x[:, :2]) for x in draws]

    def logs():
        model = make()
        trained = model.fit(
            one_by_one(data).repeat(),
            shuffle=False,
            steps_per_epoch=6,
            epochs=3,
            verbose=0,
        )
        tested = model.evaluate(one_by_one(data), verbose=0, return_dict=True)
        return trained.history, tested

    each_step = logs()
    monkeypatch.setattr(step_function, "has_gpu", lambda: True)
    assert logs() == each_step


def test_the_host_reads_every_tenth_step(late, monkeypatch):
    """And the first and the last one of an epoch, whose logs stay numbers."""
    reads, at_steps, seen = [], [], []
    of_tensor = type(tf.constant(0.0))
    numpy = of_tensor._numpy
    monkeypatch.setattr(
        of_tensor, "_numpy", lambda self: reads.append(1) or numpy(self)
    )

    class Count(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            reads.clear()

        def on_train_batch_end(self, batch, logs=None):
            at_steps.append(len(reads))
            seen.append(logs)

    model = compiled()
    fit(
        model,
        [GOOD] * 23,
        callbacks=[Count()],
    )
    waited = [step for step, count in enumerate(at_steps, 1) if count]
    assert waited == [1, 10, 20]
    assert all(type(v) is float for logs in seen for v in logs.values())
    assert seen[9] == seen[18] != seen[19]


def test_a_step_that_failed_half_way_does_not_count(late):
    """Of what was admitted, the host knows how much it has made itself."""
    model = compiled()
    fit(model, [GOOD])
    model.step_guard.admit(tf.constant(True))
    fit(model, [GOOD, *MORE])
    assert model.steps_done == 6


@pytest.mark.slow
def test_a_label_beyond_the_vocabulary_is_found_after_the_first_batch(late):
    """XLA makes NaN of it."""
    model = compiled(jit_compile=True)
    model.num_classes = VOCAB
    inputs, labels, weights = GOOD
    wrong = np.where(labels > 0, VOCAB, 0).astype("int32")
    before = model.get_weights()
    with pytest.raises(ArgumentError, match=f"Received: labels with {VOCAB}"):
        fit(model, [GOOD, (inputs, wrong, weights)])
    assert (model.get_weights()[0] != before[0]).any()  # by the first one
