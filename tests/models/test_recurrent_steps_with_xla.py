"""XLA compiles the training steps of recurrent models, loops and all."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.layers.dropout import Dropout, PieceDropout
from tests.recipe_models import SERVED, batch_of, make_served

KINDS = [kind for kind in SERVED if "transformer" not in kind]


def trained(kind, **options):
    """Loss and weights after one step."""
    served = make_served(kind)
    served.model.compile(keras.optimizers.SGD(1.0))
    step = tf.function(served.model.train_step, autograph=False, **options)
    loss = step(batch_of(kind, served))["loss"]
    return [float(loss), *served.model.get_weights()]


@pytest.mark.slow  # XLA compiles for a quarter of a minute
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_the_same(kind, monkeypatch):
    # XLA has one group of sentences, since the sizes of several depend on
    # values: without XLA each draws its own dropout.
    for layer in (Dropout, PieceDropout):
        monkeypatch.setattr(layer, "call", _not_dropped)
    expected = trained(kind)
    for one, other in zip(
        trained(kind, jit_compile=True), expected, strict=True
    ):
        # Of a value of 10, float32 distinguishes steps of 1e-6.
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-5)


def _not_dropped(self, inputs, training=False):
    return inputs
