"""B5: translators on two devices. Classifiers have a test of their own."""

import keras
import numpy as np
import pytest

from tests.models.one_by_one import one_by_one
from tests.models.test_learning import MODELS, batch_of


def trained(make_model):
    """Metrics, and weights, after five steps."""
    np.random.seed(5)
    batches = [batch_of(reversed, size, length=6) for size in (4, 3, 5, 1, 2)]
    model = make_model()
    draw = np.random.default_rng(1)
    model.set_weights(
        [draw.normal(0, 0.3, weight.shape) for weight in model.get_weights()]
    )
    model.compile(
        keras.optimizers.Adam(0.01, use_ema=True, name="adam"),
        label_smoothing=0.1,
        clip_norm=0.1,
        accumulation_steps=2,
    )
    logs = model.fit(one_by_one(batches), verbose=0, shuffle=False)
    return logs.history, model.get_weights()


# Tracing takes long: it is done twice, for two devices and two micro-batches.
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Bahdanau", "input feeding", "pre-norm"])
def test_two_devices_equal_one(kind, two_devices):
    history, weights = trained(MODELS[kind])
    with two_devices.scope():
        two, two_weights = trained(MODELS[kind])

    for one, other in zip(weights, two_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    for name, values in history.items():
        assert two[name] == pytest.approx(values, abs=1e-4), name
