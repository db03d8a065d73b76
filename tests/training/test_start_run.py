import keras
import numpy as np
import tensorflow as tf

from kseq.training import set_seed


def test_the_seed_is_that_of_all_that_draws():
    def draw():
        set_seed(5)
        drawn = keras.random.normal((3,)), tf.random.normal((3,))
        return np.stack([*drawn, np.random.normal(size=3)])

    np.testing.assert_array_equal(draw(), draw())


def test_determinism_is_asked_of_tensorflow(monkeypatch):
    # It would hold for all tests of this process; test_chaos.py has it real.
    asked = []
    monkeypatch.setattr(
        tf.config.experimental,
        "enable_op_determinism",
        lambda: asked.append(True),
    )
    set_seed(1)
    assert not asked
    set_seed(1, deterministic=True)
    assert asked
