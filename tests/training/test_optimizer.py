import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.command_line.option_types import OptimizerOptions
from kseq.models import ExactModel
from kseq.training import build_optimizer, ema_weights, warm_up_averages


def trained_model(optimizer):
    inputs = keras.Input((3,), name="inputs")
    outputs = keras.layers.Dense(1, name="outputs")(inputs)
    model = keras.Model(inputs, outputs, name="tiny")
    # Tracing would take longer than the steps.
    model.compile(optimizer, "mse", run_eagerly=True)
    for _ in range(3):
        model.train_on_batch(np.ones((4, 3)), np.full((4, 1), 7.0))
    return model


def test_averages_come_and_go():
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model = trained_model(optimizer)
    before = model.get_weights()
    with pytest.raises(ZeroDivisionError), ema_weights(model):
        averages = model.get_weights()
        raise ZeroDivisionError
    assert not np.allclose(averages[0], before[0])
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_happens_without_averages():
    model = trained_model(keras.optimizers.SGD(0.1))
    before = model.get_weights()
    with ema_weights(model):
        for a, b in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_momentum_of_averages_grows():
    """As in `tf.train.ExponentialMovingAverage`."""
    sgd = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.6)
    warm_up_averages(sgd)
    weight = keras.Variable([1.0, 2.0])
    sgd.build([weight])
    steps, followed = tf.Variable(0.0), tf.Variable([0.0, 0.0])
    expected = tf.train.ExponentialMovingAverage(0.6, num_updates=steps)
    for step in range(30):
        sgd.apply([keras.ops.ones(2) * (step + 1)], [weight])
        steps.assign(step)
        followed.assign(weight)
        expected.apply([followed])
        np.testing.assert_allclose(
            sgd._model_variables_moving_average[0],
            expected.average(followed),
            rtol=1e-5,
        )
    assert sgd.ema_momentum == 0.6


def test_nothing_to_warm_up_is_an_error():
    with pytest.raises(ValueError, match="use_ema"):
        warm_up_averages(keras.optimizers.SGD(0.1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OptimizerOptions):
    learning_rate: float = 0.3
    steps: int = 27
    warmup_steps: int = 7
    ema: float = 0.0


def rates(**options):
    schedule = build_optimizer(Config(**options)).get_config()["learning_rate"]
    schedule = keras.optimizers.schedules.deserialize(schedule)
    return np.array([float(schedule(step)) for step in range(30)])


def test_the_rate_grows_and_decays():
    steps = np.arange(1, 31)
    np.testing.assert_allclose(
        rates(), 0.3 * np.minimum(steps / 7, np.sqrt(7 / steps)), rtol=1e-6
    )
    rising = 0.3 * np.arange(8) / 7
    for schedule in ("cosine", "constant"):
        np.testing.assert_allclose(rates(schedule=schedule)[:8], rising, 1e-6)
    np.testing.assert_allclose(rates(schedule="constant")[7:], 0.3, rtol=1e-6)
    falling = 0.15 * (1 + np.cos(np.pi * np.arange(21) / 20))
    cosine = rates(schedule="cosine")
    np.testing.assert_allclose(cosine[7:28], falling, atol=1e-6)
    assert cosine[28:].max() < 1e-7
    growing = rates(schedule="range_test")
    np.testing.assert_allclose(growing[[26]], 0.3, rtol=1e-5)
    np.testing.assert_allclose(growing[1:] / growing[:-1], 10 ** (5 / 27), 1e-4)
    # A warm-up that is longer than the training.
    short = rates(schedule="cosine", steps=5)
    np.testing.assert_allclose(short[:8], rising, rtol=1e-6)


@pytest.mark.parametrize("name", ["adam", "lion", "adafactor"])
def test_optimizers_and_their_options(name):
    plain = build_optimizer(Config(optimizer=name), beta_2=0.98)
    assert type(plain).__name__.lower() == name
    assert not plain.use_ema
    if name == "adam":
        assert plain.beta_2 == 0.98
    averaged = build_optimizer(Config(optimizer=name, ema=0.5))
    assert averaged.use_ema and averaged.ema_momentum == 0.5
    weight = keras.Variable([5.0])
    averaged.build([weight])
    after = []
    for _ in range(2):
        averaged.apply([keras.ops.ones(1)], [weight])
        after.append(weight.numpy())
    (average,) = averaged._model_variables_moving_average
    mean = 2 / 11 * after[0] + 9 / 11 * after[1]
    np.testing.assert_allclose(average, mean, rtol=1e-6)

    # Without a gradient, decay alone changes a weight.
    weights = [
        keras.Variable(np.ones(3), name=name) for name in ("kernel", "bias")
    ]
    decayed = build_optimizer(
        Config(optimizer=name, weight_decay=0.5, schedule="constant")
    )
    decayed.build(weights)
    decayed.iterations.assign(10)
    decayed.apply([keras.ops.zeros(3)] * 2, weights)
    np.testing.assert_allclose(weights[0], 1 - 0.3 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(weights[1], 1)


def lion(weight, gradients, rates):
    """Chen et al. 2023, program 1."""
    momentum = np.zeros_like(weight)
    for gradient, rate in zip(gradients, rates, strict=True):
        weight = weight - rate * np.sign(0.9 * momentum + 0.1 * gradient)
        momentum = 0.99 * momentum + 0.01 * gradient
    return weight


def adafactor(weight, gradients, rates):
    """Shazeer and Stern 2018, algorithms 4 and 5, of a matrix."""
    rows, columns = np.zeros((len(weight), 1)), np.zeros((1, len(weight[0])))
    for t, (gradient, rate) in enumerate(
        zip(gradients, rates, strict=True), start=1
    ):
        decay = 1 - t**-0.8
        squares = gradient**2 + 1e-30
        rows = decay * rows + (1 - decay) * squares.sum(1, keepdims=True)
        columns = decay * columns + (1 - decay) * squares.sum(0, keepdims=True)
        update = gradient / np.sqrt(rows @ columns / rows.sum())
        update /= max(1, np.sqrt((update**2).mean()))
        size = max(1e-3, np.sqrt((weight**2).mean()))
        weight = weight - size * min(rate, t**-0.5) * update
    return weight


@pytest.mark.parametrize("formula", [lion, adafactor])
@pytest.mark.parametrize("scale", [0.1, 4.0])
def test_updates_are_those_of_the_papers(formula, scale):
    """Those of Adafactor are relative to the size of the weights."""
    draw = np.random.default_rng(0)
    start, *gradients = draw.normal(size=(13, 4, 5))
    start *= scale
    weight = keras.Variable(start)
    optimizer = build_optimizer(Config(optimizer=formula.__name__))
    optimizer.build([weight])
    for gradient in gradients:
        optimizer.apply([keras.ops.cast(gradient, "float32")], [weight])
    expected = formula(start, gradients, rates()[:12])
    np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["lion", "adafactor"])
def test_other_optimizers_train_exactly_in_micro_batches(name):
    trained = []
    for parts in (1, 3):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((3,))
        logits = keras.layers.Dense(4)(inputs)
        model = ExactModel(inputs, logits)
        config = Config(optimizer=name, ema=0.5, weight_decay=0.01)
        # Tracing would take longer than the steps.
        model.compile(
            build_optimizer(config),
            accumulation_steps=parts,
            run_eagerly=True,
        )
        draw = np.random.default_rng(0)
        data = draw.normal(size=(7, 3)), draw.integers(0, 4, 7)
        model.fit(*data, batch_size=7, epochs=3, verbose=0)
        trained.append(model.get_weights())
    for one, other in zip(*trained, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
