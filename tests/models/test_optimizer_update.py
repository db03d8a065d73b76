import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.models.optimizer_update import apply_fused, nested_optimizers
from kseq.training import LowRankOptimizer, warm_up_averages

SCHEDULE = keras.optimizers.schedules.CosineDecay(
    0.0, 10, warmup_target=0.01, warmup_steps=3
)


def warm_adam():
    adam = keras.optimizers.Adam(0.01, use_ema=True, ema_momentum=0.3)
    warm_up_averages(adam)
    return adam


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(SCHEDULE, beta_2=0.98, epsilon=1e-9),
    "adamw": lambda: keras.optimizers.AdamW(
        0.01, weight_decay=0.2, use_ema=True, ema_overwrite_frequency=2
    ),
    "averaged": lambda: keras.optimizers.AdamW(
        0.01, weight_decay=0.2, use_ema=True
    ),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(0.01), initial_scale=4.0
    ),
    "low_rank": lambda: LowRankOptimizer(
        keras.optimizers.AdamW(0.01, weight_decay=0.2, use_ema=True), rank=1
    ),
    "scaled_low_rank": lambda: keras.optimizers.LossScaleOptimizer(
        LowRankOptimizer(warm_adam(), 1), initial_scale=4.0
    ),
    "warm": warm_adam,
    "amsgrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True),
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
}


def steps(apply, optimizer, jit_compile=False, strategy=None):
    """All variables after five steps, one of which is skipped if scaled."""
    strategy = strategy or tf.distribute.get_strategy()
    rng = np.random.default_rng(0)
    keras.utils.set_random_seed(1)
    with strategy.scope():
        variables = [
            keras.Variable(rng.normal(size=shape).astype("float32"))
            for shape in ((3, 5), (5,))
        ]
        optimizer = optimizer()
        optimizer.build(variables)
    for each in nested_optimizers(optimizer):
        each._all_reduce_sum_gradients = list
    is_scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)

    @tf.function(jit_compile=jit_compile)
    def step(gradients):
        strategy.run(lambda: apply(optimizer, gradients, variables))

    for index in range(5):
        gradients = [
            tf.constant(rng.normal(size=v.shape), tf.float32) for v in variables
        ]
        if index == 1 and is_scaled:
            gradients[0] *= np.inf
        step(gradients)
    values = [*variables, *optimizer.variables]
    return [np.array(value) for value in values], step, gradients


def of_keras(optimizer, gradients, variables):
    optimizer.apply(gradients, variables)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_same_values_as_keras(name):
    fused, *_ = steps(apply_fused, OPTIMIZERS[name])
    expected, *_ = steps(of_keras, OPTIMIZERS[name])
    for one, other in zip(fused, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    ["adam", "averaged", "warm", "scaled", "low_rank", "scaled_low_rank"],
)
def test_on_two_devices(name, two_devices):
    one, *_ = steps(apply_fused, OPTIMIZERS[name])
    two, *_ = steps(apply_fused, OPTIMIZERS[name], strategy=two_devices)
    for single, mirrored in zip(one, two, strict=True):
        np.testing.assert_array_equal(single, mirrored)


@pytest.mark.parametrize("name", ["adamw", "warm", "scaled", "scaled_low_rank"])
def test_under_xla(name):
    one, *_ = steps(apply_fused, OPTIMIZERS[name])
    other, *_ = steps(apply_fused, OPTIMIZERS[name], jit_compile=True)
    for plain, compiled in zip(one, other, strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-6, atol=1e-6)


def test_one_operation_for_each_variable():
    def operations(apply):
        _, step, gradients = steps(apply, OPTIMIZERS["adam"])
        graph = step.get_concrete_function(gradients).graph
        return collections.Counter(op.type for op in graph.get_operations())

    fused, expected = operations(apply_fused), operations(of_keras)
    assert fused["ResourceApplyAdam"] == 2  # variables
    assert fused["Pow"] == 2 < expected["Pow"]
    assert fused.total() < expected.total() - 20


def test_a_subclass_keeps_its_formula():
    class Backwards(keras.optimizers.Adam):
        def update_step(self, gradient, variable, learning_rate):
            variable.assign_add(gradient * learning_rate)

    variable = keras.Variable([1.0])
    optimizer = Backwards(0.5)
    optimizer.build([variable])
    apply_fused(optimizer, [tf.constant([2.0])], [variable])
    assert variable.numpy() == [2.0]
