import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.models.optimizer_update import nested_optimizers
from kseq.training import LowRankOptimizer, ema_weights
from kseq.training.low_rank_optimizer import largest_rank
from tests.models.test_exact_model import (
    assert_all_close,
    dataset,
    same_start,
    tiny_model,
)
from tests.training.tiny_training import make_model, train

SIZES = [(8, 6), (6, 9), (6, 2), (6,)]  # the third and fourth are not adapted
RANK = 2


def variables_of(sizes=SIZES):
    draw = np.random.default_rng(0)
    return [
        keras.Variable(draw.normal(size=size).astype("float32"))
        for size in sizes
    ]


def random_gradients(sizes=SIZES, seed=1):
    draw = np.random.default_rng(seed)
    return [tf.constant(draw.normal(size=s), tf.float32) for s in sizes]


def built(optimizer, variables):
    keras.utils.set_random_seed(7)
    optimizer = LowRankOptimizer(optimizer, RANK)
    optimizer.build(variables)
    return optimizer


def factors_of(optimizer):
    return [
        [factor.numpy() for factor in pair]
        for pair in optimizer._factors
        if pair
    ]


@pytest.mark.parametrize("name", ["adam", "lion", "adafactor"])
def test_the_weights_are_the_first_ones_and_the_product(name):
    variables = variables_of()
    first = [each.numpy() for each in variables]
    optimizer = keras.optimizers.get(name)
    optimizer.learning_rate = 0.05
    optimizer = built(optimizer, variables)
    for down, up in factors_of(optimizer):
        assert down.any() and abs(down).max() <= down.shape[0] ** -0.5
        assert not up.any()
    for step in range(5):
        optimizer.apply(random_gradients(seed=step), variables)
    assert optimizer.iterations == 5
    for start, end, (down, up) in zip(
        first, variables, factors_of(optimizer), strict=False
    ):
        change = end.numpy() - start
        assert np.linalg.matrix_rank(change, tol=1e-4) == RANK
        np.testing.assert_allclose(change, 2 * down @ up, atol=1e-5)


def test_the_gradients_are_those_of_the_factors():
    """By differentiation of W_0 + 2 A B, with an optimizer without state."""
    [start] = variables = variables_of(SIZES[:1])
    first = start.numpy()
    optimizer = built(keras.optimizers.SGD(0.1), variables)
    [(down, up)] = factors_of(optimizer)
    x, y = np.split(np.random.default_rng(3).normal(size=(4, 14)), [8], axis=1)

    def loss_of(weight):
        return tf.reduce_sum((tf.constant(x, tf.float32) @ weight - y) ** 2)

    for _ in range(3):
        factors = tf.Variable(down), tf.Variable(up)
        with tf.GradientTape() as tape:
            loss = loss_of(first + 2 * factors[0] @ factors[1])
        gradients = tape.gradient(loss, factors)
        down, up = (
            f - 0.1 * g for f, g in zip(factors, gradients, strict=True)
        )

        with tf.GradientTape() as tape:
            loss = loss_of(start.value)
        optimizer.apply([tape.gradient(loss, start.value)], variables)
    [found] = factors_of(optimizer)
    np.testing.assert_allclose(found[0], down, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], up, rtol=1e-4, atol=1e-5)


def test_what_is_not_larger_than_its_factors_is_trained_itself():
    variables, others = variables_of(), variables_of()
    optimizer = built(keras.optimizers.Adam(0.05), variables)
    full = keras.optimizers.Adam(0.05)
    full.build(others)
    for step in range(3):
        gradients = random_gradients(seed=step)
        optimizer.apply(gradients, variables)
        full.apply(gradients, others)
    assert len(factors_of(optimizer)) == 2
    for one, other in zip(variables[2:], others[2:], strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_the_kernel_of_a_convolution_is_a_matrix_of_its_filters():
    """Three positions of four inputs are twelve rows."""
    found = []
    for shape in ((3, 4, 6), (12, 6)):
        variables = [each.numpy() for each in variables_of([(12, 6)])]
        variables = [keras.Variable(each.reshape(shape)) for each in variables]
        adam = keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.5)
        optimizer = built(adam, variables)
        for step in range(3):
            [gradient] = random_gradients([(12, 6)], seed=step)
            optimizer.apply([tf.reshape(gradient, shape)], variables)
        last = variables[0].numpy().reshape(12, 6)
        optimizer.finalize_variable_values(variables)
        found.append((last, variables[0].numpy().reshape(12, 6)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(*found[0])


def test_it_is_built_once():
    """As the optimizers of Keras are; a model builds it in `compile`."""
    variables = variables_of()
    optimizer = built(keras.optimizers.Adam(), variables)
    before = [each.path for each in optimizer.variables]
    optimizer.build(variables)
    assert [each.path for each in optimizer.variables] == before


def test_what_has_no_gradient_stays():
    variables = variables_of()
    optimizer = built(keras.optimizers.Adam(0.05), variables)
    _, second, _, fourth = random_gradients()
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        optimizer.apply([None, second, None, fourth], variables)
    stay = [
        np.array_equal(one.numpy(), other.numpy())
        for one, other in zip(variables, variables_of(), strict=True)
    ]
    assert stay == [True, False, True, False]


def test_the_learning_rate_is_that_of_the_inner_optimizer():
    optimizer = LowRankOptimizer(keras.optimizers.Adam(0.5), 3)
    optimizer.learning_rate = 0.25
    assert optimizer.learning_rate == 0.25
    assert optimizer.inner_optimizer.learning_rate == 0.25


@pytest.mark.parametrize(
    ("shape", "rank"),
    [((8, 6), 3), ((2, 6), 1), ((1, 9), 0), ((6,), 0), ((2, 4, 6), 3)],
)
def test_the_largest_rank(shape, rank):
    assert largest_rank(shape) == rank


def trained(model, sizes=(5, 6, 1), **settings):
    """Weights and variables of the optimizer; some batches are uneven."""
    adam = keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.5)
    model.compile(
        LowRankOptimizer(adam, RANK),
        clip_norm=0.1,
        label_smoothing=0.1,
        **settings,
    )
    history = model.fit(dataset(sizes), verbose=0, shuffle=False).history
    values = [np.array(each) for each in model.optimizer.variables]
    return history, [*model.get_weights(), *values]


@pytest.fixture(scope="module")
def trained_once():
    return trained(same_start(tiny_model()))


# Guards of the next two are in tests/models/test_optimizer_update.py.
@pytest.mark.slow
def test_two_devices_and_micro_batches_equal_one(trained_once, two_devices):
    history, values = trained_once
    with two_devices.scope():
        model = same_start(tiny_model())
        two, two_values = trained(model, accumulation_steps=2)
    assert_all_close(values, two_values)
    assert two["loss"] == pytest.approx(history["loss"], abs=1e-5)
    kernel = model.get_layer("hidden").kernel
    for value in model.distribute_strategy.experimental_local_results(
        kernel.value
    ):
        np.testing.assert_array_equal(value.numpy(), kernel.numpy())


@pytest.mark.slow
def test_xla_computes_the_same(trained_once):
    _, values = trained(same_start(tiny_model()), jit_compile=True)
    assert_all_close(values, trained_once[1])


def test_a_step_whose_gradients_overflow_changes_nothing():
    model = same_start(tiny_model("mixed_float16"))
    before = model.get_weights()
    trained(model, sizes=[6])
    changed = model.get_weights()
    assert not np.array_equal(changed[1], before[1])
    scaled, low_rank, _ = nested_optimizers(model.optimizer)
    scaled.dynamic_scale.assign(1e38)
    factors = factors_of(low_rank)
    model.fit(dataset([6]), verbose=0, shuffle=False)
    assert low_rank.iterations == 1
    for one, other in zip(model.get_weights(), changed, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(factors_of(low_rank), factors, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def low_rank_model():
    model = make_model()
    adam = keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.5)
    model.compile(LowRankOptimizer(adam, RANK), "mse", jit_compile=False)
    return model


def test_a_stopped_training_resumes_as_if_it_had_not_been(tmp_path):
    """To the bit; and the best weights are those of averaged factors."""
    whole = train(tmp_path / "whole", 2, model=low_rank_model())
    train(tmp_path / "cut", 1, model=low_rank_model())
    cut = train(tmp_path / "cut", 2, model=low_rank_model())
    for one, other in zip(
        [*whole.variables, *whole.optimizer.variables],
        [*cut.variables, *cut.optimizer.variables],
        strict=True,
    ):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_averages_are_those_of_the_factors():
    variables = variables_of(SIZES[:1] + SIZES[2:3])
    first = variables[0].numpy()
    adam = keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.5)
    model = types.SimpleNamespace(
        optimizer=built(adam, variables), trainable_variables=variables
    )
    gradients = random_gradients(SIZES[:1] + SIZES[2:3])
    for _ in range(3):
        model.optimizer.apply(gradients, variables)
    last = [each.numpy() for each in variables]
    down, up, plain = adam._model_variables_moving_average
    with ema_weights(model):
        expected = first + 2 * down.numpy() @ up.numpy()
        np.testing.assert_allclose(variables[0].numpy(), expected, atol=1e-5)
        np.testing.assert_array_equal(variables[1].numpy(), plain.numpy())
    for one, other in zip(variables, last, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


def test_a_saved_optimizer_is_the_same():
    adam = keras.optimizers.Adam(0.05, use_ema=True)
    optimizer = LowRankOptimizer(adam, 3)
    config = keras.saving.serialize_keras_object(optimizer)
    loaded = keras.saving.deserialize_keras_object(config)
    assert loaded.get_config() == optimizer.get_config()
    assert loaded.inner_optimizer.use_ema and loaded.learning_rate == 0.05


@pytest.mark.parametrize("rank", [0, -1, 1.5, True, float("nan"), None])
def test_absurd_ranks_are_refused(rank):
    with pytest.raises(ValueError, match=f"rank={rank}"):
        LowRankOptimizer(keras.optimizers.Adam(), rank)
