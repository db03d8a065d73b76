"""Translators on two devices; classifiers have a test of their own."""

import numpy as np
import pytest

from tests.models.few_steps import few_steps
from tests.models.test_learning import MODELS, batch_of


def trained(make_model):
    np.random.seed(5)
    batches = [batch_of(reversed, size, length=6) for size in (4, 3, 5, 1, 2)]
    return few_steps(make_model, batches, accumulation_steps=2)


# Slow to trace: the step has two devices and two micro-batches.
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
