"""A step that XLA compiles is the step that TensorFlow runs."""

import contextlib

import keras
import numpy as np
import pytest

from kseq import models
from tests.models.few_steps import few_steps
from tests.models.test_exact_model import (
    assert_all_close,
    same_start,
    tiny_model,
    train,
)
from tests.recipe_models import SERVED, batch_of, make_served
from tests.slow import slow

VOCAB = 12
WITHOUT_RECURRENCE = [
    kind for kind in SERVED if "transformer" in kind or "convolutional" in kind
]


def transformer(**arguments):
    return models.Transformer(
        *(VOCAB, VOCAB),
        num_encoder_layers=1,
        num_decoder_layers=1,
        model_dim=8,
        ffn_dim=8,
        num_heads=2,
        share_embeddings=True,
        **arguments,
    )


def pairs(rows=4, length=6, padding=0):
    draw = np.random.default_rng(1)
    ids = draw.integers(4, VOCAB, (3, rows, length), "int32")
    ids[:, 0, 3:] = 0
    source, target, labels = np.pad(ids, ((0, 0), (0, 0), (0, padding)))
    inputs = {"source_ids": source, "target_ids": target}
    return inputs, labels, (labels > 0).astype("float32")


def settings(**more):
    adam = keras.optimizers.Adam(
        0.05, use_ema=True, ema_momentum=0.5, name="adam"
    )
    return {"optimizer": adam, "clip_norm": 0.1, "label_smoothing": 0.1, **more}


@pytest.mark.parametrize(
    ("devices", "parts"), [(1, 1), slow(1, 3), slow(2, 1), slow(2, 2)]
)
def test_devices_and_micro_batches_change_nothing(devices, parts, two_devices):
    history, weights = train(same_start(tiny_model()), [6, 6], **settings())
    scope = two_devices.scope if devices == 2 else contextlib.nullcontext
    with scope():
        model = same_start(tiny_model())
        by_xla, xla_weights = train(
            model,
            [6, 6],
            **settings(jit_compile=True, accumulation_steps=parts),
        )
    assert model.jit_compile
    assert_all_close(weights, xla_weights)
    for name, values in history.items():
        assert by_xla[name] == pytest.approx(values, abs=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "limit"), [("mixed_float16", 1e-3), ("mixed_bfloat16", 2e-2)]
)
def test_half_precision_stays_close(policy, limit):
    _, weights = train(same_start(tiny_model(policy)), [6], clip_norm=0.5)
    _, by_xla = train(
        same_start(tiny_model(policy)), [6], clip_norm=0.5, jit_compile=True
    )
    assert_all_close(weights, by_xla, atol=limit)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITHOUT_RECURRENCE)
def test_every_model_without_recurrence(kind):
    """With dropout of the same features."""
    model = make_served(kind).model
    if not all(layer.supports_jit for layer in model._flatten_layers()):
        pytest.skip("a layer does not support XLA")
    found = []
    for jit_compile in (False, True):
        served = make_served(kind)
        model = served.model
        sgd = keras.optimizers.SGD(0.1)
        model.compile(sgd, clip_norm=1.0, jit_compile=jit_compile)
        assert model.jit_compile == jit_compile
        keras.utils.set_random_seed(1)
        logs = model.train_on_batch(*batch_of(kind, served), return_dict=True)
        found.append((logs, model.get_weights()))
    (logs, weights), (expected, expected_weights) = found
    for name, value in expected.items():
        assert logs[name] == pytest.approx(value, rel=1e-5, abs=1e-5), name
    assert_all_close(weights, expected_weights)


@pytest.mark.slow
def test_a_padded_token_changes_nothing():
    found = [
        few_steps(transformer, [pairs(padding=padding)], jit_compile=True)[1]
        for padding in (0, 3)
    ]
    assert_all_close(*found, atol=1e-6)


@pytest.mark.slow
def test_training_resumes_to_the_bit():
    def compiled():
        model = transformer(dropout=0.3)
        model.compile(**settings(jit_compile=True))
        return model

    model, other = compiled(), compiled()
    model.train_on_batch(*pairs())
    for mine, its in (
        (other.variables, model.variables),
        (other.optimizer.variables, model.optimizer.variables),
    ):
        for variable, value in zip(mine, its, strict=True):
            variable.assign(value)
    for one in (model, other):
        one.train_on_batch(*pairs())
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_gpu_chooses_it(reported_gpu, dtype):
    model = tiny_model(dtype)
    model.compile("sgd")
    assert model.jit_compile
    model.compile("sgd", run_eagerly=True)
    assert not model.jit_compile
    model.compile("sgd", jit_compile=False)
    assert not model.jit_compile
    # Saved as it was asked for, not as it was chosen here.
    assert model.get_compile_config()["jit_compile"] is False
    model.compile("sgd")
    assert model.get_compile_config()["jit_compile"] == "auto"


def test_a_processor_does_not_choose_it():
    model = tiny_model()
    model.compile("sgd")
    assert not model.jit_compile
