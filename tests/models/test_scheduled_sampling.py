import contextlib
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.models.scheduled_sampling import (
    SCHEDULES,
    feed_predictions,
    random_of_rows,
    sampling_rate,
)
from kseq.user_error import ArgumentError
from tests.gpu_memory import GraphMemory, has_gpu_kernels
from tests.models.few_steps import check_same_steps, few_steps
from tests.models.seq2seq_systems import (
    VOCAB,
    batch_of,
    captions,
    chat,
    frames,
    lstm,
    speech,
    text,
    turns,
    with_padding,
)
from tests.models.test_every_seq2seq import check_it_resumes
from tests.models.test_gpu_kernels import read_on_the_host
from tests.slow import others_slow, slow

SAMPLED = {
    "sampling_schedule": "exponential",
    "sampling_rate": 0.5,
    "sampling_steps": 1,
    "sampling_seed": 7,
}
CASES = {
    "feeding": (functools.partial(lstm, "general", "feeding"), text),
    "gru": (
        functools.partial(
            lstm, "bahdanau", "bahdanau", cell="gru", num_decoder_layers=2
        ),
        text,
    ),
    "copies": (
        functools.partial(
            lstm, source_vocab_size=VOCAB, copy=True, coverage=0.5
        ),
        text,
    ),
    "no attention, tied": (
        functools.partial(lstm, "none", tie_embeddings=True),
        text,
    ),
    "local": (functools.partial(lstm, "local-m", "bahdanau"), text),
    "captions": (captions, frames),
    "speech": (speech, frames),
    "chat": (chat, turns),
}


def compiled(make, updates=5, **settings):
    model = make(**SAMPLED, **settings)
    model.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    model.optimizer.iterations.assign(updates)
    return model


def as_tensors(inputs):
    return {name: tf.constant(value) for name, value in inputs.items()}


# A reference in Python.


def hash_of(x):
    for _ in range(2):
        x = (x ^ x >> 16) * 0x45D9F3B % 2**32
    return x ^ x >> 16


def draw(ids, place, seed, step):
    row = sum(x * hash_of(t) % 2**32 for t, x in enumerate(ids, 1))
    row = hash_of(row % 2**32 ^ hash_of(step ^ hash_of(seed)))
    return (hash_of(row ^ hash_of(place)) >> 8) / 2**24


def reference(model, inputs, rate, seed, step):
    """Each token by a call of the model with what is fed before it."""
    target = inputs["target_ids"]
    fed = np.copy(target)
    for t in range(1, target.shape[1]):
        logits = model({**inputs, "target_ids": fed[:, :t]})[:, -1].numpy()
        for row, ids in enumerate(target.tolist()):
            is_token = ids[t] not in (PAD, START)
            if is_token and draw(ids, t + 1, seed, step) < rate:
                fed[row, t] = logits[row].argmax()
    return fed


@pytest.mark.parametrize("name", others_slow(CASES, ["feeding"]))
def test_predictions_are_those_of_a_loop_over_the_model(seed, name):
    make, source = CASES[name]
    model = compiled(make, updates=2)
    inputs, *_ = batch_of(source, 12)
    rate = 0.5 * (1 - 2**-2)
    expected = reference(model, inputs, rate, seed=7, step=2)
    found = feed_predictions(model, as_tensors(inputs))
    np.testing.assert_array_equal(found.pop("target_ids"), expected)
    assert found.keys() == inputs.keys() - {"target_ids"}
    is_token = (inputs["target_ids"] != PAD) & (inputs["target_ids"] != START)
    changed = expected != inputs["target_ids"]
    assert changed.any() and (changed <= is_token).all()


def test_the_step_is_that_of_what_is_fed(seed):
    """Loss and gradients, which do not pass through a prediction."""
    make, source = CASES["feeding"]
    model, plain = compiled(make), make()
    plain.set_weights(model.get_weights())
    plain.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    inputs, *rest = batch_of(source, 12)
    inputs = as_tensors(inputs)
    fed = feed_predictions(model, inputs)
    loss, gradients = model.loss_and_gradients((inputs, *rest))
    expected, others = plain.loss_and_gradients((fed, *rest))
    assert loss == expected
    for one, other in zip(gradients, others, strict=True):
        np.testing.assert_array_equal(one, other)
    assert loss != plain.loss_and_gradients((inputs, *rest))[0]


def test_an_evaluation_reads_the_target_alone(seed):
    make, source = CASES["feeding"]
    model, plain = compiled(make), make()
    plain.set_weights(model.get_weights())
    plain.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    data = batch_of(source, 12)
    assert model.test_on_batch(*data) == plain.test_on_batch(*data)


def test_a_model_without_it_is_as_before():
    arguments = lstm().get_config()
    assert not [name for name in arguments if name.startswith("sampling")]
    sampled = lstm(**SAMPLED)
    assert len(sampled.variables) == len(lstm().variables)
    again = type(sampled).from_config(sampled.get_config())
    assert again.get_config() == sampled.get_config()
    assert again.sampling_seed == 7


# The rate.


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("steps", [1, 10, 1000, 2**31 - 1])
def test_the_rate_grows_to_its_limit(schedule, steps):
    found = [
        float(sampling_rate(schedule, 0.4, steps, step))
        for step in (0, steps // 2, steps, 3 * steps, 30 * steps, 2**62)
    ]
    assert found == sorted(found) and found[0] < 0.2
    assert found[2] == pytest.approx(0.2)
    assert found[-1] == pytest.approx(0.4)


def test_rates_of_the_paper():
    """1 - k / (k + exp(i / k)) with k = 10; 1 - 0.9 ** i; a line."""
    k = 10.0
    steps = round(k * np.log(k))  # 23
    for i in (0, 5, 23, 60):
        expected = 1 - k / (k + np.exp(i / k))
        found = float(sampling_rate("inverse_sigmoid", 1.0, steps, i))
        assert found == pytest.approx(expected, abs=0.002)
        assert float(sampling_rate("linear", 1.0, 23, i)) == pytest.approx(
            min(i / 46, 1)
        )
        assert float(sampling_rate("exponential", 1.0, 23, i)) == pytest.approx(
            1 - 0.5 ** (i / 23), abs=1e-6
        )


def test_draws_are_even_and_independent():
    ids = np.random.default_rng(1).integers(4, 9000, (400, 40))
    draws = [random_of_rows(ids, seed, step) for seed, step in ((0, 0), (0, 1))]
    draws += [random_of_rows(ids, 1, 0), random_of_rows(ids[::-1], 0, 0)]
    draws = [np.ravel(values) for values in draws]
    counts, _ = np.histogram(draws[0], bins=16, range=(0, 1))
    np.testing.assert_allclose(counts, 1000, atol=150)
    assert abs(np.corrcoef(draws) - np.eye(4)).max() < 0.04
    table = np.reshape(draws[0], ids.shape)
    neighbors = table[:, :-1].ravel(), table[:, 1:].ravel()
    assert abs(np.corrcoef(neighbors) - np.eye(2)).max() < 0.04


# Exactness.


def test_padding_and_other_rows_change_nothing(seed):
    make, source = CASES["feeding"]
    model = compiled(make)
    inputs, *_ = batch_of(source, 12)
    fed = feed_predictions(model, as_tensors(inputs))["target_ids"]
    padded = feed_predictions(model, as_tensors(with_padding(inputs)))
    np.testing.assert_array_equal(padded["target_ids"][:, :-2], fed)
    some = {name: values[[5, 11, 2]] for name, values in inputs.items()}
    part = feed_predictions(model, as_tensors(some))["target_ids"]
    np.testing.assert_array_equal(part, np.array(fed)[[5, 11, 2]])


@pytest.mark.parametrize(
    ("devices", "parts", "jit_compile"),
    [(1, 3, False), slow(2, 2, False), slow(1, 1, True), slow(2, 1, True)],
)
def test_devices_micro_batches_and_xla_change_nothing(
    two_devices, devices, parts, jit_compile
):
    make = functools.partial(lstm, "general", "feeding", **SAMPLED)
    np.random.seed(5)
    batches = [batch_of(text, size) for size in (4, 3, 5)]
    expected = few_steps(make, batches, run_eagerly=True)
    scope = two_devices.scope if devices == 2 else contextlib.nullcontext
    settings = {"accumulation_steps": parts, "jit_compile": jit_compile}
    settings["run_eagerly"] = devices == 1 and not jit_compile
    with scope():
        found = few_steps(make, batches, **settings)
    check_same_steps(found, expected, atol=1e-4)


@pytest.mark.slow  # two trainings
def test_a_stopped_training_resumes_to_the_bit(tmp_path):
    np.random.seed(5)
    batches = [batch_of(text, size) for size in (4, 3, 5)]
    options = {"dropout": 0.5, **SAMPLED}
    make = functools.partial(lstm, "general", "feeding", **options)
    check_it_resumes(make, batches, tmp_path, after=2)


@pytest.mark.slow  # to trace a loop
@pytest.mark.skipif(not has_gpu_kernels(), reason="no kernels for GPUs")
def test_what_is_fed_stays_on_a_gpu():
    model = lstm("general", "feeding", **SAMPLED)
    model.compile(keras.optimizers.SGD(1.0))
    specs = {
        name: tf.TensorSpec((None, None), tf.int32)
        for name in ("source_ids", "target_ids")
    }
    fed = tf.function(functools.partial(feed_predictions, model))
    memory = GraphMemory(fed.get_concrete_function(specs))
    data, _ = read_on_the_host(memory)
    assert not data
    assert not memory.without_kernel


# Errors.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampling_schedule", "cosine"),
        ("sampling_schedule", ""),
        ("sampling_rate", -0.1),
        ("sampling_rate", 1.5),
        ("sampling_rate", float("nan")),
        ("sampling_rate", None),
        ("sampling_steps", 0),
        ("sampling_steps", 2.5),
        ("sampling_steps", 2**31),
        ("sampling_seed", -1),
        ("sampling_seed", None),
    ],
)
def test_absurd_values_are_refused(name, value):
    with pytest.raises(ArgumentError, match=f"Received: {name}={value!r}"):
        lstm(**{name: value})
