"""What every model of a source and a target promises."""

import functools
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import END, PAD
from kseq.decoding.start_decoding import map_rows
from kseq.layers import PyramidalEncoder
from kseq.user_error import ArgumentError
from tests.half_precision import HALF_POLICIES
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.one_by_one import one_by_one
from tests.models.seq2seq_systems import (
    CASES,
    CASES_WITHOUT_SOURCE,
    EVERY_CASE,
    REORDERED_CASES,
    RETRIEVAL,
    SYSTEMS,
    TYPICAL_CASES,
    VOCAB,
    batch_of,
    model_of,
    speech,
    with_padding,
)
from tests.slow import others_slow, slow
from tests.training.test_checkpoints import Signal, assert_same_state
from tests.training.tiny_training import train

every_case = pytest.mark.parametrize("name", EVERY_CASE)
typical_cases = pytest.mark.parametrize("name", TYPICAL_CASES)
typical_models = pytest.mark.parametrize("name", [*TYPICAL_CASES, *RETRIEVAL])
every_system = pytest.mark.parametrize("name", [*SYSTEMS, *RETRIEVAL])


def logits(model, inputs):
    return keras.ops.convert_to_numpy(model(inputs))


def real_logits(model, inputs, labels):
    """Those of real tokens, or of whole answers."""
    found = logits(model, inputs)
    if found.ndim == 2:
        return found
    return found[:, : labels.shape[1]][labels != PAD]


def batch(name, size=3):
    return batch_of(CASES[name][1], size)


# Layers of the others run in half precision in test_every_layer.py.
half_systems = pytest.mark.parametrize(
    "name",
    [
        *("lstm", "transformer", "speech"),
        *map(slow, ("captions", "caption transformer", "chat", *RETRIEVAL)),
    ],
)


# Two ways to one answer.


@every_case
def test_steps_equal_the_whole_sequence(seed, name):
    model, (inputs, *_) = model_of(name), batch(name)
    whole, state = logits(model, inputs), model.encode(inputs)
    for t, ids in enumerate(inputs["target_ids"].T):
        step, state = model.decode_step(ids, state)
        np.testing.assert_allclose(step, whole[:, t], atol=1e-5)


# The others step above.
@pytest.mark.parametrize("name", REORDERED_CASES)
def test_hypotheses_of_an_item_are_reordered_as_searches_do(seed, name):
    """One, three and two of each of 3 items, from parents at random."""
    model, (inputs, *_) = model_of(name), batch(name)
    state, before = model.encode(inputs), 1
    prefixes = np.zeros((3, 0), "int32")
    for count in (1, 3, 2):
        parents = np.random.randint(before, size=(3, count))
        rows = (np.arange(3)[:, None] * before + parents).ravel()
        state = map_rows(lambda x, rows=rows: np.take(x, rows, axis=0), state)
        ids = np.random.randint(END + 1, VOCAB, (3 * count, 1))
        prefixes = np.concatenate([prefixes[rows], ids], axis=1)
        repeated = {k: np.repeat(x, count, axis=0) for k, x in inputs.items()}
        expected = logits(model, repeated | {"target_ids": prefixes})
        step, state = model.decode_step(ids[:, 0], state)
        np.testing.assert_allclose(step, expected[:, -1], atol=1e-5)
        before = count


@typical_models
def test_a_file_has_the_same_model(seed, name, tmp_path):
    model, (inputs, *_) = model_of(name), batch(name)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    for one, other in zip(model.weights, loaded.weights, strict=True):
        assert one.path == other.path
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(logits(loaded, inputs), logits(model, inputs))


@pytest.mark.parametrize("policy", HALF_POLICIES)
@half_systems
def test_half_precision(seed, name, policy):
    model, (inputs, *_) = model_of(name), batch(name)
    half = model_of(name, policy)
    half.set_weights(model.get_weights())
    found = logits(half, inputs)
    assert found.dtype == "float32"
    tolerance = 0.15 if "transformer" in name else 0.2
    np.testing.assert_allclose(found, logits(model, inputs), atol=tolerance)


# Influence.


@typical_models
def test_padding_changes_nothing(seed, name):
    model, (inputs, labels, weights) = model_of(name), batch(name)
    padded = with_padding(inputs)
    more = with_padding({"labels": labels, "weights": weights})
    np.testing.assert_allclose(
        real_logits(model, padded, labels),
        real_logits(model, inputs, labels),
        atol=1e-5,
    )
    # Tracing would take longer than the step.
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    one = model.test_on_batch(inputs, labels, weights, return_dict=True)
    two = model.test_on_batch(padded, *more.values(), return_dict=True)
    assert two["loss"] == pytest.approx(one["loss"], abs=1e-5)


@typical_cases
def test_the_future_is_not_read(seed, name):
    """Equal to the bit."""
    model, (inputs, *_) = model_of(name), batch(name)
    size, length = inputs["target_ids"].shape
    # Copies that are changed from the first, the second, ... position.
    inputs = {key: np.repeat(x, length, axis=0) for key, x in inputs.items()}
    target, first = inputs["target_ids"], np.tile(np.arange(length), size)
    is_changed = np.arange(length) >= first[:, None]
    other = (target - END) % (VOCAB - END - 1) + END + 1
    changed = np.where(is_changed, other, target)
    before = logits(model, inputs)
    after = logits(model, inputs | {"target_ids": changed})
    np.testing.assert_array_equal(after[~is_changed], before[~is_changed])
    for row in range(-length, 0):  # an item without padding
        assert (after[row] != before[row]).any()


def assert_finite_without_a_source(name, dtype):
    model, (inputs, labels, weights) = model_of(name, dtype), batch(name)
    for key in ("source_ids", "source_mask"):
        if key in inputs:
            inputs[key][0] = 0
    assert np.isfinite(logits(model, inputs)).all()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    inputs = {key: tf.constant(x) for key, x in inputs.items()}
    loss, gradients = model.loss_and_gradients((inputs, labels, weights))
    assert np.isfinite(loss)
    for gradient in gradients:
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", [*CASES_WITHOUT_SOURCE, *RETRIEVAL])
def test_a_source_of_padding_alone_is_finite(seed, name):
    assert_finite_without_a_source(name, "float32")


@pytest.mark.parametrize("policy", HALF_POLICIES)
@half_systems
def test_a_source_of_padding_alone_is_finite_in_half(seed, name, policy):
    assert_finite_without_a_source(name, policy)


# Ids without a row.


# Of features there are no ids: only those of targets, as in the others.
@pytest.mark.parametrize(
    "name",
    others_slow(
        [*SYSTEMS, *RETRIEVAL],
        [*SYSTEMS.keys() - {"captions", "caption transformer"}, *RETRIEVAL],
    ),
)
def test_ids_beyond_the_vocabulary_are_refused(seed, name):
    """Before the first step, also of a later data set."""
    model, (inputs, labels, weights) = model_of(name), batch(name)
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    given = inputs | {"labels": labels}
    limits = {"source_ids": 12, "target_ids": VOCAB, "labels": VOCAB}
    for key, limit in limits.items():
        for wrong in (limit, -1) if key in given else ():
            changed = {k: np.copy(x) for k, x in given.items()}
            changed[key].flat[1] = wrong
            message = f"{key} must be from 0 to {limit - 1}: .* knows {limit} "
            data = changed, changed.pop("labels"), weights
            for step in (model.train_on_batch, model.test_on_batch):
                with pytest.raises(ArgumentError, match=message):
                    step(*data)
    assert model.optimizer.iterations == 0


@pytest.mark.parametrize("mode", ["eager", "compiled", "XLA"])
def test_ids_are_checked_however_a_step_runs(seed, mode, monkeypatch):
    """A step of XLA would read the last row."""
    if mode == "XLA":
        by_xla = functools.partial(tf.function, jit_compile=True)
        monkeypatch.setattr(tf, "function", by_xla)
    model = SYSTEMS["lstm"][0]()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=mode == "eager")
    good, (inputs, *rest) = batch("lstm"), batch("lstm")
    inputs["source_ids"][0, 0] = 12
    before = model.get_weights()
    for data in ([(inputs, *rest)], [(inputs, *rest), good]):
        with pytest.raises(ArgumentError, match="Received: source_ids with 12"):
            model.fit(one_by_one(data), verbose=0, shuffle=False)
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


# Learning.


@typical_models
def test_gradients_reach_every_weight(seed, name):
    model = model_of(name)
    before = [weight.numpy() for weight in model.trainable_weights]
    model.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    model.train_on_batch(*batch(name, 6))
    for weight, value in zip(model.trainable_weights, before, strict=True):
        assert np.isfinite(weight).all()
        assert (weight.numpy() != value).any(), weight.path


@pytest.mark.slow  # in tests/training, of one model
@pytest.mark.parametrize("name", SYSTEMS | RETRIEVAL)
def test_a_stopped_training_resumes_to_the_bit(name, tmp_path):
    """With dropout, and speech that is masked and stretched at random."""
    np.random.seed(5)
    batches = [batch(name, size) for size in (4, 3, 5)]
    make = functools.partial(CASES[name][0], dropout=0.5)
    check_it_resumes(make, batches, tmp_path, after=1)


def check_it_resumes(make_model, batches, folder, after, **settings):
    def trained(path, callbacks=()):
        keras.utils.set_random_seed(3)
        model = make_model()
        # Tracing would take longer than the steps.
        adam = keras.optimizers.Adam(0.01)
        model.compile(adam, run_eagerly=True, **settings)
        data = one_by_one(batches).repeat()
        return train(folder / path, 1, callbacks, data, model, steps=3)

    whole = trained("whole")
    with pytest.raises(SystemExit):
        trained("cut", [Signal(after, signal.SIGTERM)])
    assert_same_state(trained("cut"), whole)
    assert whole.optimizer.iterations == 3


def speech_without_augmentation():
    encoder = PyramidalEncoder(8, num_layers=1, front_end="convolution")
    return speech(source_layer=encoder)


@pytest.mark.slow  # to trace the step for two devices and two micro-batches
@every_system
def test_two_devices_equal_one(name, two_devices):
    make, source = CASES[name]
    if name == "speech":  # each device augments in its own way
        make = speech_without_augmentation
    np.random.seed(5)
    batches = [batch_of(source, size) for size in (4, 3, 5, 1, 2)]
    settings = {"accumulation_steps": 2}
    expected = few_steps(make, batches)
    with two_devices.scope():
        found = few_steps(make, batches, **settings)
    check_same_steps(found, expected, atol=1e-4)
