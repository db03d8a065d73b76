import contextlib
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.models import BinaryRNN
from kseq.models.auxiliary_losses import alignment_losses
from tests.half_precision import HALF_POLICIES
from tests.models.few_steps import few_steps
from tests.models.seq2seq_systems import (
    batch_of,
    convolutional,
    lstm,
    text,
    transformer,
)
from tests.slow import slow

MODELS = {
    "transformer": transformer,
    "lstm": functools.partial(lstm, "general", "feeding"),
    "convolutional": convolutional,
    "lstm with coverage": functools.partial(lstm, coverage=0.5),
}


def aligned(size=5):
    """A batch with an alignment to real positions, or to none."""
    inputs, labels, weights = batch_of(text, size)
    lengths = (inputs["source_ids"] > 0).sum(axis=1, keepdims=True)
    places = np.random.randint(0, 1 + np.broadcast_to(lengths, labels.shape))
    alignment = np.where(labels > 0, places, 0).astype("int32")
    return {**inputs, "alignment": alignment}, labels, weights


def without(batch):
    inputs, *others = batch
    return {k: v for k, v in inputs.items() if k != "alignment"}, *others


def test_the_loss_is_that_of_the_chosen_positions():
    weights = np.array([[[0.5, 0.25, 0.25], [1, 0, 0], [0, 1, 0]]], "float16")
    found = alignment_losses(weights, np.array([[2, 0, 1]])).numpy()
    np.testing.assert_allclose(
        found, [[np.log(4), 0, 6 * np.log(10)]], atol=1e-5
    )
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    "name",
    ["transformer", "lstm", "convolutional", slow("lstm with coverage")],
)
def test_the_attention_that_is_shown_is_guided(name, seed):
    model, data = MODELS[name](), aligned()
    losses = []
    for weight in (0.0, 0.7):
        model.compile("sgd", guided_alignment=weight, run_eagerly=True)
        used = data if weight else without(data)
        losses.append(float(model.loss_and_gradients(used)[0]))

    attention = model.attention_weights(without(data)[0]).numpy()
    alignment, weights = data[0]["alignment"], data[2]
    chosen = np.take_along_axis(
        attention, np.maximum(alignment - 1, 0)[..., None], axis=2
    )[..., 0]
    expected = (-np.log(chosen) * (alignment > 0)).sum() / weights.sum()
    assert losses[1] - losses[0] == pytest.approx(0.7 * expected, rel=1e-3)
    logits, shown = model.logits_and_attention(without(data)[0])
    np.testing.assert_allclose(logits, model(without(data)[0]), atol=1e-5)
    np.testing.assert_array_equal(shown, attention)

    one = tf.data.Dataset.from_tensors(without(data))
    model.compile("sgd", run_eagerly=True)
    plain = model.evaluate(one, verbose=0)
    model.compile("sgd", guided_alignment=0.7, run_eagerly=True)
    assert model.evaluate(one, verbose=0) == plain


def test_micro_batches_change_nothing(seed):
    settings = {"guided_alignment": 0.5, "run_eagerly": True}
    batches, found = [aligned()], []
    for parts in (1, 2):
        settings["accumulation_steps"] = parts
        found.append(few_steps(transformer, batches, **settings))
    (history, weights), (others, other_weights) = found
    assert others["loss"] == pytest.approx(history["loss"], abs=1e-4)
    for one, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "devices", "parts", "xla"),
    [
        ("transformer", 2, 2, False),
        ("transformer", 1, 2, True),
        ("transformer", 2, 1, True),
        ("lstm", 2, 2, False),
        ("convolutional", 2, 2, False),
    ],
)
def test_devices_micro_batches_and_xla(
    name, devices, parts, xla, two_devices, seed
):
    batches = [aligned(), aligned(3)]
    settings = {"guided_alignment": 0.5}
    history, weights = few_steps(MODELS[name], batches, **settings)
    scope = two_devices.scope if devices == 2 else contextlib.nullcontext
    with scope():
        settings |= {"accumulation_steps": parts, "jit_compile": xla}
        others, other_weights = few_steps(MODELS[name], batches, **settings)
    for metric, values in history.items():
        assert others[metric] == pytest.approx(values, abs=1e-4), metric
    for one, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)


@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_no_attention_at_all_stays_finite(policy, seed):
    """In half precision, with R-Drop, where the position is padding."""
    model, data = transformer(dtype=policy), aligned()
    data[0]["alignment"] = np.where(data[1] > 0, 6, 0).astype("int32")
    model.compile("sgd", guided_alignment=1.0, r_drop=1.0, run_eagerly=True)
    loss, gradients = model.loss_and_gradients(data)
    assert 6 < loss < 20
    assert all(np.isfinite(each).all() for each in gradients)


def test_models_without_attention_to_a_source_are_refused():
    for model in (
        BinaryRNN(2, 3, keras.layers.SimpleRNNCell(4)),
        lstm(attention=None),
    ):
        with pytest.raises(ValueError, match=r"attends to its source.*: guid"):
            model.compile("sgd", guided_alignment=0.1)
    for weight in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite number of at least 0"):
            model.compile("sgd", guided_alignment=weight)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "lstm", "convolutional"])
def test_an_alignment_is_learned(name, new_seed):
    """Also one that reversing a string does not need."""
    found = []
    for weight in (0.0, 10.0):
        model = MODELS[name]()
        model.compile(keras.optimizers.Adam(0.01), guided_alignment=weight)
        change = (lambda batch: batch) if weight else without
        batches = (change(reversed_batch()) for _ in range(300))
        model.fit(batches, steps_per_epoch=300, verbose=0, shuffle=False)
        inputs, labels, _ = reversed_batch()
        weights = model.attention_weights(without((inputs,))[0]).numpy()
        right = weights.argmax(axis=2) + 1 == inputs["alignment"]
        found.append(right[labels > 0].mean())
    assert found[1] > 0.95 > 0.7 > found[0], found


def reversed_batch(size=64, length=4):
    source = np.random.randint(4, 12, (size, length)).astype("int32")
    labels = source[:, ::-1].copy()
    target = np.pad(labels, [(0, 0), (1, 0)], constant_values=2)[:, :-1]
    places = np.arange(1, length + 1) % length  # the next one, then the first
    alignment = np.broadcast_to(1 + places, labels.shape)
    inputs = {"source_ids": source, "target_ids": target}
    inputs["alignment"] = alignment.astype("int32")
    return inputs, labels, np.ones(labels.shape, "float32")
