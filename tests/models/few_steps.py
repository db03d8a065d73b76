"""Training for a few steps, the same in every place."""

import keras
import numpy as np
import pytest

from tests.models.one_by_one import one_by_one


def few_steps(make_model, batches, **settings):
    """Metrics and weights after one step for each batch.

    With clipping and moving averages of the weights; `settings` are passed to
    `compile`.
    """
    model = make_model()
    draw = np.random.default_rng(1)
    model.set_weights(
        [draw.normal(0, 0.3, weight.shape) for weight in model.get_weights()]
    )
    model.compile(
        keras.optimizers.Adam(0.01, use_ema=True, name="adam"),
        label_smoothing=0.1,
        clip_norm=0.1,
        **settings,
    )
    logs = model.fit(one_by_one(batches), verbose=0, shuffle=False)
    return logs.history, model.get_weights()


def check_same_steps(found, expected, atol):
    """What `few_steps` has given twice; `atol` is of the metrics."""
    (history, weights), (known, known_weights) = found, expected
    for one, other in zip(weights, known_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    for name, values in known.items():
        assert history[name] == pytest.approx(values, abs=atol), name
