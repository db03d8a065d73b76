import contextlib
import copy
import re
import time

import keras
import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from kseq.layers import Dropout
from kseq.models import BinaryRNN, ExactModel, exact_step
from kseq.ops import padding_mask
from tests.half_precision import HALF_POLICIES
from tests.models.one_by_one import one_by_one
from tests.slow import slow

VOCAB = 11


def tiny_model(dtype=None, dropout=0.0):
    """Each position sees all before it, by a sum: a loop is traced longer."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = keras.layers.Embedding(VOCAB, 8, dtype=dtype, name="embedding")(ids)
    x = x * keras.ops.cast(padding_mask(ids), x.dtype)[..., None]
    x = keras.layers.Dense(8, "tanh", dtype=dtype, name="hidden")(
        keras.ops.cumsum(x, axis=1)
    )
    if dropout:
        x = Dropout(dropout, name="dropout")(x)
    logits = keras.layers.Dense(VOCAB, dtype=dtype, name="logits")(x)
    return ExactModel(
        inputs={"ids": ids}, outputs=logits, dtype=dtype, name="tiny"
    )


def batches(sizes, length=6, seed=0):
    """Batches with very unequal numbers of real tokens in their rows."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        ids = rng.integers(1, VOCAB, (size, length)).astype("int32")
        lengths = rng.integers(1, length + 1, size)
        lengths[: size // 2] = 1
        real = np.arange(length) < lengths[:, None]
        yield (
            {"ids": np.where(real, ids, 0)},
            np.where(real, np.roll(ids, 1, axis=1), 0),
            real.astype("float32"),
        )


def dataset(sizes):
    return one_by_one(batches(sizes))


def train(model, sizes, optimizer=None, **settings):
    model.compile(
        optimizer or keras.optimizers.SGD(0.5, name="sgd"), **settings
    )
    history = model.fit(dataset(sizes), verbose=0, shuffle=False).history
    return history, model.get_weights()


def same_start(model):
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(3)
    model.set_weights(
        [rng.normal(0, 0.5, weight.shape) for weight in model.get_weights()]
    )
    return model


def assert_all_close(left, right, atol=1e-5):
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def test_loss_is_the_mean_over_real_tokens():
    model = same_start(tiny_model())
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    [(inputs, labels, weights)] = batches([5])

    reported = model.evaluate(dataset([5]), verbose=0, return_dict=True)

    log_probs = np.log(keras.ops.softmax(model(inputs), axis=-1))
    losses = -np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    loss = (losses * weights).sum() / weights.sum()
    best = np.argmax(log_probs, -1)
    accuracy = ((best == labels) * weights).sum() / weights.sum()
    assert reported["loss"] == pytest.approx(loss, abs=1e-5)
    assert reported["perplexity"] == pytest.approx(np.exp(loss), abs=1e-3)
    assert reported["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert reported["tokens"] == weights.sum()
    assert reported["padding"] == pytest.approx(1 - weights.mean(), abs=1e-6)


def test_evaluation_weighs_batches_by_their_tokens():
    whole = same_start(tiny_model())
    whole.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    parts = list(batches([1, 7]))
    reported = whole.evaluate(dataset([1, 7]), verbose=0, return_dict=True)

    total, count = 0.0, 0.0
    for part in parts:
        one = tf.data.Dataset.from_tensors(part)
        loss = whole.evaluate(one, verbose=0, return_dict=True)["loss"]
        total += loss * part[2].sum()
        count += part[2].sum()
    assert reported["loss"] == pytest.approx(total / count, abs=1e-5)


@pytest.mark.slow  # two devices below have micro-batches, too
@pytest.mark.parametrize("parts", [2, 3])
def test_micro_batches_change_nothing(parts):
    settings = {"clip_norm": 0.1, "label_smoothing": 0.1}
    sizes = [6, 6, 5]
    history, weights = train(same_start(tiny_model()), sizes, **settings)
    cut, cut_weights = train(
        same_start(tiny_model()), sizes, accumulation_steps=parts, **settings
    )
    assert_all_close(weights, cut_weights)
    assert cut["loss"] == pytest.approx(history["loss"], abs=1e-5)


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([3, 6, 1], 2),
        slow([6, 6, 6, 6, 6], 1),
        slow([6, 6, 6, 6, 6], 2),
        slow([4, 6, 5], 1),
        slow([4, 6, 5], 2),
        slow([3, 6, 1], 1),
    ],
)
def test_two_devices_equal_one(sizes, parts, two_devices):
    """Also if a batch is uneven, or leaves a device without a row."""

    def settings():
        return {
            "clip_norm": 0.1,
            "label_smoothing": 0.1,
            "accumulation_steps": parts,
            "optimizer": keras.optimizers.Adam(
                0.05, use_ema=True, ema_momentum=0.5, name="adam"
            ),
        }

    history, weights = train(same_start(tiny_model()), sizes, **settings())

    with two_devices.scope():
        model = same_start(tiny_model())
        two, two_weights = train(model, sizes, **settings())

    assert_all_close(weights, two_weights)
    for name, values in history.items():
        assert two[name] == pytest.approx(values, abs=1e-5), name


@pytest.mark.slow
def test_two_devices_equal_one_in_float16(two_devices):
    """Also where a loss is scaled, and its optimizer is within another."""
    settings = {"clip_norm": 0.1}
    history, weights = train(
        same_start(tiny_model("mixed_float16")), [6, 6], **settings
    )
    with two_devices.scope():
        model = same_start(tiny_model("mixed_float16"))
        two, two_weights = train(model, [6, 6], **settings)
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert_all_close(weights, two_weights, atol=1e-3)
    assert two["loss"] == pytest.approx(history["loss"], abs=1e-3)


@pytest.mark.parametrize("policy", [slow("float32"), "mixed_float16"])
def test_gradients_are_summed_over_devices_once(
    policy, two_devices, monkeypatch
):
    """By the step, which clips the sum; not by Keras once more."""
    reduced = []

    def counted(self, operation, value, **options):
        reduced.extend(tf.nest.flatten(value))
        return all_reduce(self, operation, value, **options)

    all_reduce = tf.distribute.ReplicaContext.all_reduce
    monkeypatch.setattr(tf.distribute.ReplicaContext, "all_reduce", counted)
    with two_devices.scope():
        model = same_start(tiny_model(policy))
        train(model, [6], clip_norm=0.1, run_eagerly=True)

    shapes = [tuple(value.shape) for value in reduced]
    expected = [tuple(weight.shape) for weight in model.trainable_variables]
    # By each of the two; other tensors are sums of losses.
    assert sorted(filter(None, shapes)) == sorted(2 * expected)
    assert shapes.count(()) < 20


def test_gradients_are_exchanged_in_few_pieces(two_devices, monkeypatch):
    """The first one while others are computed; but not one for each weight."""
    kilobyte = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=1024
    )
    monkeypatch.setattr(exact_step, "_IN_PIECES", kilobyte)
    with two_devices.scope():
        model = same_start(tiny_model())
        model.compile(keras.optimizers.SGD(0.5), clip_norm=0.1)
    step = tf.function(
        lambda data: two_devices.run(model.train_step, args=(data,)),
        autograph=False,
    )
    graph = step.get_concrete_function(next(batches([6]))).graph
    types = [operation.type for operation in graph.get_operations()]
    assert len(model.trainable_variables) == 5
    assert types.count("CollectiveReduceV2") == 2 * 2  # two of each device


@pytest.mark.parametrize("weight", [0.1, 1e-6])
def test_a_mean_does_not_depend_on_the_scale_of_its_weights(weight):
    """Also of all weights together being below 1."""

    def weighted(scale):
        [(inputs, labels, weights)] = batches([4])
        return tf.data.Dataset.from_tensors((inputs, labels, scale * weights))

    found = []
    for scale in (weight, 1.0):
        model = same_start(tiny_model())
        settings = {"clip_norm": 10.0, "run_eagerly": True}
        model.compile(keras.optimizers.SGD(0.5), **settings)
        tested = model.evaluate(weighted(scale), verbose=0, return_dict=True)
        loss, gradients = model.loss_and_gradients(next(iter(weighted(scale))))
        trained = model.fit(weighted(scale), verbose=0, shuffle=False).history
        numbers = [tested, {"loss": float(loss)}, trained]
        found.append((numbers, gradients + model.get_weights()))
    (numbers, arrays), (expected, expected_arrays) = found
    for one, other in zip(numbers, expected, strict=True):
        for name in one:
            assert one[name] == pytest.approx(other[name], rel=1e-4), name
    assert_all_close(arrays, expected_arrays)


def test_no_weight_at_all_is_a_loss_of_0():
    model = same_start(tiny_model())
    before = model.get_weights()
    settings = {"clip_norm": 1.0, "run_eagerly": True}
    model.compile(keras.optimizers.SGD(0.5), **settings)
    [(inputs, labels, weights)] = batches([3])
    data = tf.data.Dataset.from_tensors((inputs, labels, 0 * weights))

    assert model.evaluate(data, verbose=0, return_dict=True)["loss"] == 0
    history = model.fit(data, verbose=0, shuffle=False).history
    assert history["loss"] == history["gradient_norm"] == [0.0]
    assert_all_close(model.get_weights(), before, atol=0)


def test_the_norm_is_clipped_and_reported_before():
    model = same_start(tiny_model())
    before = model.get_weights()
    settings = {"clip_norm": 0.01, "run_eagerly": True}
    history, after = train(model, [6], keras.optimizers.SGD(1.0), **settings)
    step = [b - a for a, b in zip(before, after, strict=True)]
    norm = np.sqrt(sum((part**2).sum() for part in step))
    assert norm == pytest.approx(0.01, rel=1e-4)
    assert history["gradient_norm"][0] > 0.02


@pytest.mark.parametrize("policy", HALF_POLICIES)
def test_mixed_precision_stays_close(policy):
    settings = {"clip_norm": 0.5, "run_eagerly": True}
    _, exact = train(same_start(tiny_model()), [6, 6], **settings)
    keras.config.set_dtype_policy(policy)
    model = same_start(tiny_model(policy))
    history, weights = train(model, [6, 6], **settings)
    assert_all_close(exact, weights, atol=0.02)
    assert 0 < history["gradient_norm"][0] < 100


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_weights_of_any_dtype_are_trained(dtype, two_devices):
    """On one device and two, in micro-batches, and with R-Drop."""

    def trained(dtype, scope=None, **settings):
        with scope or contextlib.nullcontext():
            model = same_start(tiny_model(dtype))
            adam = keras.optimizers.Adam(0.01, epsilon=1e-3, use_ema=True)
            history, weights = train(
                model, [6, 6], adam, clip_norm=0.1, **settings
            )
        assert {v.dtype for v in model.trainable_variables} == {dtype}
        return history, [w.astype("float32") for w in weights]

    atol = 1e-5 if dtype == "float64" else 0.05
    history, expected = trained("float32")
    for settings in (
        {"accumulation_steps": 2},
        {"scope": two_devices.scope()},
        {"r_drop": 1.0},
    ):
        found, weights = trained(dtype, **settings)
        assert_all_close(weights, expected, atol)
        assert found["loss"] == pytest.approx(history["loss"], abs=atol)


def test_gradients_of_micro_batches_are_added_in_float32():
    keras.config.set_dtype_policy("bfloat16")
    model = same_start(tiny_model("bfloat16"))
    model.compile("sgd")
    _, gradients = model.loss_and_gradients(next(batches([6])))
    assert {gradient.dtype for gradient in gradients} == {tf.float32}


def test_smoothing_is_of_the_loss_and_not_of_the_perplexity():
    plain, smooth = (
        train(
            same_start(tiny_model()),
            [6],
            label_smoothing=label_smoothing,
            run_eagerly=True,
        )[0]
        for label_smoothing in (0.0, 0.2)
    )
    assert smooth["loss"][0] != pytest.approx(plain["loss"][0], abs=1e-3)
    assert smooth["perplexity"] == pytest.approx(plain["perplexity"], rel=1e-5)


# That XLA changes nothing is tested in test_xla_steps.py, without R-Drop.
@pytest.mark.parametrize("jit_compile", [False, slow(True)])
def test_r_drop_adds_the_divergence_of_two_predictions(jit_compile):
    model = same_start(tiny_model(dropout=0.5))
    [(inputs, labels, weights)] = batches([5])
    [seeds] = [v for v in model.non_trainable_variables if v.dtype == "int64"]
    before = np.array(seeds)
    p, q = (
        scipy.special.log_softmax(model(inputs, training=True), axis=-1)
        for _ in range(2)
    )
    assert np.abs(p - q).max() > 0.1
    divergence = scipy.special.rel_entr(np.exp(p), np.exp(q))
    divergence += scipy.special.rel_entr(np.exp(q), np.exp(p))
    of_labels = -np.take_along_axis((p + q) / 2, labels[..., None], axis=-1)
    losses = of_labels[..., 0] + 3.0 / 4 * divergence.sum(axis=-1)
    seeds.assign(before)

    history, _ = train(model, [5], r_drop=3.0, jit_compile=jit_compile)
    expected = np.average(losses, weights=weights)
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5)
    likelihood = np.average(of_labels[..., 0], weights=weights)
    np.testing.assert_allclose(
        history["perplexity"], np.exp(likelihood), rtol=1e-5
    )


def test_r_drop_changes_nothing_where_predictions_agree():
    """Without dropout; and evaluation reads a batch once."""
    plain = train(same_start(tiny_model()), [6, 4], run_eagerly=True)
    model = same_start(tiny_model())
    twice = train(model, [6, 4], r_drop=5.0, run_eagerly=True)
    for name, values in plain[0].items():
        np.testing.assert_allclose(twice[0][name], values, rtol=1e-6)
    assert_all_close(plain[1], twice[1], atol=1e-7)

    model = same_start(tiny_model(dropout=0.5))
    reported = []
    for r_drop in (0.0, 5.0):
        model.compile("sgd", r_drop=r_drop, run_eagerly=True)
        reported.append(model.evaluate(dataset([5]), verbose=0))
    assert reported[0] == reported[1]


def test_r_drop_needs_logits_of_classes():
    model = BinaryRNN(2, 3, keras.layers.SimpleRNNCell(4))
    with pytest.raises(ValueError, match=r"exclusive classes.*BinaryRNN"):
        model.compile("sgd", r_drop=1.0)


def test_a_saved_model_resumes_training(tmp_path):
    model = same_start(tiny_model())
    settings = {
        "clip_norm": 0.5,
        "label_smoothing": 0.1,
        "accumulation_steps": 2,
        "r_drop": 0.5,
        "run_eagerly": True,
        "auto_scale_loss": False,
    }
    train(model, [6], **settings)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    for name, value in settings.items():
        assert getattr(loaded, name) == value, name
    assert loaded.get_compile_config() == model.get_compile_config()
    for one in (model, loaded):
        one.fit(dataset([6]), verbose=0, shuffle=False)
    assert_all_close(model.get_weights(), loaded.get_weights())


def test_a_copy_is_trained_as_the_model():
    model = same_start(tiny_model())
    model.compile("adam", label_smoothing=0.1, clip_norm=1.0)
    model.fit(dataset([4]), verbose=0, shuffle=False)
    clone = copy.deepcopy(model)
    for each in (model, clone):
        each.fit(dataset([4]), verbose=0, shuffle=False)
    for found, expected in zip(
        clone.get_weights(), model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


class _Counting(ExactModel):
    """Has a metric of its own, as Keras's guide to `train_step` adds one."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rows = keras.metrics.Sum(name="rows")

    def train_step(self, data):
        return self.counted(super().train_step(data), data)

    def test_step(self, data):
        return self.counted(super().test_step(data), data)

    def counted(self, logs, data):
        self.rows.update_state(tf.ones_like(data[1]))
        return {**logs, "rows": self.rows.result()}


def test_metrics_of_a_subclass_are_reset():
    inputs = keras.Input((3,))
    model = _Counting(inputs, keras.layers.Dense(2)(inputs))
    assert model.metrics == [model.rows]
    x, y = np.ones((6, 3)), np.ones(6, int)
    for _ in range(2):
        model.compile("sgd", run_eagerly=True)
        names = [metric.name for metric in model.metrics]
        assert len(names) == len(set(names)) == 7
        history = model.fit(
            *(x[:4], y[:4]),
            batch_size=2,
            epochs=2,
            validation_data=(x, y),
            verbose=0,
        ).history
        assert (history["rows"], history["val_rows"]) == ([4, 4], [6, 6])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label_smoothing": 1.0}, "label_smoothing=1.0"),
        ({"clip_norm": 0.0}, "clip_norm=0.0"),
        ({"accumulation_steps": 0}, "accumulation_steps=0"),
        ({"accumulation_steps": 1.5}, "accumulation_steps=1.5"),
        ({"clip_norm": float("nan")}, "clip_norm=nan"),
        ({"r_drop": -1.0}, "r_drop=-1.0"),
        ({"r_drop": float("nan")}, "r_drop=nan"),
        ({"r_drop": float("inf")}, "r_drop=inf"),
        ({"optimizer": None}, "optimizer=None"),
        ({"clip_norm": float("inf")}, "clip_norm=inf"),
        ({"clip_norm": 0.0}, "clip_norm=0.0"),
        ({"label_smoothing": None}, "label_smoothing=None"),
        ({"r_drop": "1"}, "r_drop='1'"),
        (
            {"optimizer": keras.optimizers.SGD(0.1, global_clipnorm=1.0)},
            "global_clipnorm=1.0",
        ),
        (
            {
                "optimizer": keras.optimizers.LossScaleOptimizer(
                    keras.optimizers.SGD(0.1, clipvalue=2.0)
                )
            },
            "clipvalue=2.0",
        ),
    ],
)
def test_what_could_not_be_exact_is_refused(settings, message):
    optimizer = settings.pop("optimizer", keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match=message):
        tiny_model().compile(optimizer, **settings)


@pytest.mark.parametrize(
    "argument",
    [
        {"loss": "mse"},
        {"loss_weights": [1.0]},
        {"metrics": ["accuracy"]},
        {"weighted_metrics": ["accuracy"]},
        {"steps_per_execution": 2},
    ],
)
def test_what_would_be_ignored_is_refused(argument):
    [(name, value)] = argument.items()
    message = re.escape(f"Received: {name}={value!r}")
    with pytest.raises(ValueError, match=message):
        tiny_model().compile(keras.optimizers.SGD(0.1), **argument)


def test_a_loss_is_refused_by_position():
    with pytest.raises(ValueError, match="Received: loss='mse'"):
        tiny_model().compile("sgd", "mse")


def test_defaults_of_keras_are_accepted():
    model = same_start(tiny_model())
    model.compile(
        "sgd", loss=None, metrics=None, jit_compile="auto", run_eagerly=True
    )
    assert model.run_eagerly and not model.jit_compile


def test_regularizers_are_refused():
    inputs = keras.Input((4,))
    regular = keras.layers.Dense(VOCAB, kernel_regularizer="l2")
    model = ExactModel(inputs, regular(inputs))
    model.compile("sgd")
    with pytest.raises(ValueError, match="Received: 1 losses"):
        model.train_on_batch(np.ones((2, 4)), np.ones(2, "int32"))


def test_labels_of_another_shape_are_refused():
    model = tiny_model()
    model.compile("sgd")
    [(inputs, labels, weights)] = batches([3])
    with pytest.raises(ValueError, match="labels of shape"):
        model.test_on_batch(inputs, labels[:, 0])
    with pytest.raises(ValueError, match="weights of shape"):
        model.test_on_batch(inputs, labels, weights[:, 0])


@pytest.mark.parametrize("label", [-100, VOCAB])
def test_labels_beyond_the_logits_are_refused(label):
    """Also where their weight is 0, as that of -100 in other toolkits."""
    model = tiny_model()
    model.compile("sgd", run_eagerly=True)
    [(inputs, labels, weight)] = batches([4])
    labels = np.where(weight > 0, labels, label)
    with pytest.raises(ValueError, match=f"Received: labels with {label}"):
        model.fit(inputs, labels, sample_weight=weight, verbose=0)


def test_class_weights_are_for_one_label_a_row():
    """Keras makes one weight of the labels of a row."""
    model = tiny_model()
    model.compile("sgd")
    [(inputs, labels, _)] = batches([4])
    with pytest.raises(ValueError, match="Use sample_weight where rows have"):
        model.fit(inputs, labels, class_weight={1: 2.0}, verbose=0)


def test_the_time_that_steps_wait_for_their_batches():
    model = tiny_model()
    model.compile(keras.optimizers.SGD(0.1))

    def slow_batches():
        yield from dataset([3])
        time.sleep(0.2)
        yield from dataset([3])

    iterator = slow_batches()
    model.make_train_function()
    model.train_function(iterator)
    before = model.seconds_waiting
    model.train_function(iterator)
    assert model.seconds_waiting - before > 0.2
