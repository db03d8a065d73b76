import keras
import numpy as np
import pytest

from kseq.training import adam, ema_weights


def trained_model(optimizer):
    inputs = keras.Input((3,), name="inputs")
    outputs = keras.layers.Dense(1, name="outputs")(inputs)
    model = keras.Model(inputs, outputs, name="tiny")
    model.compile(optimizer, "mse", jit_compile=False)
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


def test_adam_has_the_schedule_and_averages_where_asked():
    optimizer = adam(0.3, 7, beta_2=0.98)
    assert not optimizer.use_ema
    assert optimizer.beta_2 == 0.98
    assert optimizer.get_config()["learning_rate"]["config"] == {
        "peak": 0.3,
        "warmup_steps": 7,
    }
    averaged = adam(0.3, 7, ema=0.0)
    assert averaged.use_ema and averaged.ema_momentum == 0.0
