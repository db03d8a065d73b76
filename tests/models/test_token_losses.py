"""Losses of a model's own under the exact step."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from kseq.models import ExactModel, TokenLosses
from kseq.models.cross_entropy import cross_entropy
from kseq.ops import padding_mask
from tests.models.one_by_one import one_by_one
from tests.slow import slow

CLASSES = 5
SIZES = (4, 3, 1, 5)  # uneven for two devices; one leaves a device nothing


class Tagger(ExactModel):
    """Several labels for a row: binary cross-entropy of each."""

    def token_losses(self, inputs, labels, outputs, sample_weight, smoothing):
        labels = ops.cast(labels, "float32")
        labels = labels * (1 - smoothing) + smoothing / 2
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, outputs)
        return TokenLosses(ops.mean(losses, axis=-1), sample_weight)


class Speller(ExactModel):
    """Cross-entropy, and CTC of the encoder, one number for each row."""

    def token_losses(self, inputs, labels, outputs, sample_weight, smoothing):
        loss, likelihood, right = cross_entropy(
            labels, outputs["logits"], smoothing
        )
        count = ops.sum(sample_weight, axis=1)
        frames = outputs["frames"]
        real = padding_mask(inputs["source_ids"])
        ctc = tf.nn.ctc_loss(
            with_a_row(ops.cast(labels, "int32")),
            with_a_row(ops.cast(frames, "float32")),
            with_a_row(ops.cast(count, "int32")),
            with_a_row(ops.sum(ops.cast(real, "int32"), axis=1)),
            logits_time_major=False,
        )[:-1]
        loss = loss + 0.3 * (ctc / ops.maximum(count, 1))[:, None]
        return TokenLosses(loss, sample_weight, likelihood, right)


def with_a_row(x):
    """A row of ones at the end: CTC fails for a device without any."""
    after = [(0, 1)] + [(0, 0)] * (len(x.shape) - 1)
    return ops.pad(x, after, constant_values=1)


class Reader(ExactModel):
    """Cross-entropy, and a penalty on attention that is not spread evenly."""

    def token_losses(self, inputs, labels, outputs, sample_weight, smoothing):
        loss, likelihood, right = cross_entropy(
            labels, outputs["logits"], smoothing
        )
        weights = ops.cast(outputs["weights"], "float32")  # (B, T, S)
        total = ops.sum(weights * sample_weight[:, :, None], axis=1)
        penalty = ops.sum(ops.square(1 - total), axis=-1)
        count = ops.maximum(ops.sum(sample_weight, axis=1), 1)
        loss = loss + 0.1 * (penalty / count)[:, None]
        return TokenLosses(loss, sample_weight, likelihood, right)


def embedded(ids, name):
    layer = keras.layers.Embedding(12, 6, name=name)
    return layer(ids)


def make_tagger():
    ids = keras.Input((None,), dtype="int32", name="source_ids")
    mask = ops.cast(padding_mask(ids), "float32")[..., None]
    x = ops.sum(embedded(ids, "source") * mask, axis=1)
    return Tagger({"source_ids": ids}, keras.layers.Dense(CLASSES)(x))


def make_speller():
    source = keras.Input((None,), dtype="int32", name="source_ids")
    target = keras.Input((None,), dtype="int32", name="target_ids")
    frames = keras.layers.Dense(CLASSES, name="frames")(
        embedded(source, "source")
    )
    logits = keras.layers.Dense(CLASSES, name="letters")(
        embedded(target, "target")
        + ops.mean(frames, axis=(1, 2))[:, None, None]
    )
    return Speller(
        {"source_ids": source, "target_ids": target},
        {"logits": logits, "frames": frames},
    )


def make_reader():
    source = keras.Input((None,), dtype="int32", name="source_ids")
    target = keras.Input((None,), dtype="int32", name="target_ids")
    memory, query = embedded(source, "source"), embedded(target, "target")
    energies = ops.matmul(query, ops.swapaxes(memory, 1, 2))
    weights = ops.softmax(energies, axis=-1)
    logits = keras.layers.Dense(CLASSES, name="letters")(
        ops.matmul(weights, memory)
    )
    return Reader(
        {"source_ids": source, "target_ids": target},
        {"logits": logits, "weights": weights},
    )


def rows(size, length, low=1):
    """Ids of unequal lengths, padded with 0, and their mask."""
    lengths = np.random.randint(low, length + 1, size=(size, 1))
    real = np.arange(length) < lengths
    ids = np.random.randint(1, 12, size=(size, length)) * real
    return ids.astype("int32"), real.astype("float32")


def tagger_batches():
    for size in SIZES:
        ids, _ = rows(size, 6)
        labels = np.random.randint(2, size=(size, CLASSES)).astype("int32")
        weight = np.random.randint(1, 4, size).astype("float32")
        yield {"source_ids": ids}, labels, weight


def speller_batches():
    for size in SIZES:
        source, _ = rows(size, 9, low=8)
        target, weight = rows(size, 4)
        labels = (target % (CLASSES - 1) + 1) * weight.astype("int32")
        yield {"source_ids": source, "target_ids": target}, labels, weight


FAMILIES = {
    "binary cross-entropy": (make_tagger, tagger_batches),
    "CTC": (make_speller, speller_batches),
    "attention penalty": (make_reader, speller_batches),
}


@pytest.fixture(params=FAMILIES)
def family(request, seed):
    make, batches = FAMILIES[request.param]
    return make, list(batches())


# That two devices are exact, `test_exact_model.py` shows in every run.
mostly_one = pytest.mark.parametrize(
    "family",
    [
        slow("attention penalty"),
        slow("binary cross-entropy"),
        slow("CTC"),
    ],
    indirect=True,
)


def trained(make, batches, epochs=2, **settings):
    keras.utils.set_random_seed(1)
    model = make()
    model.compile(
        keras.optimizers.SGD(0.2, momentum=0.9),
        label_smoothing=0.1,
        clip_norm=1.0,
        **settings,
    )
    logs = model.fit(
        one_by_one(batches), epochs=epochs, verbose=0, shuffle=False
    ).history
    return model, logs


def assert_same(one, other):
    (model, logs), (other_model, other_logs) = one, other
    for a, b in zip(
        model.get_weights(), other_model.get_weights(), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
    assert logs.keys() == other_logs.keys()
    for name, values in logs.items():
        assert other_logs[name] == pytest.approx(values, abs=1e-4), name


@pytest.mark.slow  # two devices below have micro-batches, too
@pytest.mark.parametrize(
    "family",
    ["attention penalty", "binary cross-entropy", "CTC"],
    indirect=True,
)
@pytest.mark.parametrize("parts", [2, 3])
def test_micro_batches_change_nothing(family, parts):
    make, batches = family
    whole = trained(make, batches)
    assert_same(whole, trained(make, batches, accumulation_steps=parts))


@mostly_one
@pytest.mark.parametrize("parts", [slow(1), 2])
def test_two_devices_equal_one(family, parts, two_devices):
    make, batches = family
    whole = trained(make, batches)
    with two_devices.scope():
        two = trained(make, batches, accumulation_steps=parts)
    assert_same(whole, two)


# Tracing the step would take longer than the steps below.
EAGERLY = {"run_eagerly": True, "epochs": 1}


def test_logs_name_what_the_model_has(family):
    make, batches = family
    batches = batches[:2]
    model, logs = trained(make, batches, **EAGERLY)
    expected = {"loss", "tokens", "padding"}
    if make is not make_tagger:
        expected |= {"accuracy", "perplexity"}
    assert logs.keys() == expected | {"gradient_norm"}
    report = model.evaluate(one_by_one(batches), verbose=0, return_dict=True)
    assert report.keys() == expected
    assert all(np.isfinite(value) for value in report.values())


def test_a_loss_for_each_row_counts_source_tokens(seed):
    batches = list(tagger_batches())
    model, _ = trained(make_tagger, batches[:1], **EAGERLY)
    report = model.evaluate(
        one_by_one(batches[:1]), verbose=0, return_dict=True
    )
    ids = batches[0][0]["source_ids"]
    assert report["tokens"] == (ids > 0).sum()
    assert report["padding"] == pytest.approx((ids == 0).mean(), abs=1e-6)


def test_the_loss_is_a_mean_by_weight(seed):
    [batch, *_] = tagger_batches()
    inputs, labels, weight = batch
    model, _ = trained(make_tagger, [batch], **EAGERLY)
    probability = 1 / (1 + np.exp(-np.array(model(inputs), "float64")))
    losses = -np.log(np.where(labels, probability, 1 - probability)).mean(1)
    report = model.test_on_batch(*batch, return_dict=True)
    assert report["loss"] == pytest.approx(
        (losses * weight).sum() / weight.sum(), rel=1e-5
    )


def test_features_are_counted_by_their_mask():
    source = keras.Input((None, 3), name="source")
    mask = keras.Input((None,), dtype="bool", name="source_mask")
    real = ops.cast(mask, "float32")[..., None]
    logits = keras.layers.Dense(CLASSES)(ops.sum(source * real, axis=1))
    model = ExactModel({"source": source, "source_mask": mask}, logits)
    model.compile("sgd", run_eagerly=True)
    mask = np.arange(4) < np.array([[4], [1]])
    report = model.test_on_batch(
        {"source": np.ones((2, 4, 3)), "source_mask": mask},
        np.zeros(2, "int32"),
        return_dict=True,
    )
    assert (report["tokens"], report["padding"]) == (5, 0.375)


@pytest.mark.parametrize("losses", [ops.mean, TokenLosses, lambda loss: None])
def test_a_mean_of_the_batch_is_refused(losses):
    class Regression(ExactModel):
        def token_losses(self, inputs, labels, outputs, *_):
            return losses(ops.mean(ops.square(outputs - labels)))

    inputs = keras.Input((4,))
    model = Regression(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match="one loss for each token or row"):
        model.train_on_batch(np.ones((2, 4)), np.ones((2, 1)))


def test_without_labels_and_weights():
    class Repeater(ExactModel):
        def token_losses(self, inputs, labels, outputs, *_):
            return TokenLosses(ops.mean(ops.square(outputs - inputs), -1))

    inputs = keras.Input((4,))
    model = Repeater(inputs, keras.layers.Dense(4)(inputs))
    sgd = keras.optimizers.SGD(0.01)
    model.compile(sgd, accumulation_steps=2, run_eagerly=True)
    x = np.random.normal(size=(6, 4)).astype("float32")
    loss = model.fit(x, epochs=3, verbose=0).history["loss"]
    assert loss[-1] < loss[0]
