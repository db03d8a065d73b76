import math

import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import LayerNormalization
from tests.layers.arrays import normal


def built(**arguments):
    layer = LayerNormalization(**arguments)
    layer.build((None, None, 8))
    layer.set_weights([normal(8), normal(8)])
    return layer


def test_contract(seed, tmp_path):
    inputs = keras.Input((None, 8))
    layer = built()
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")

    x = normal(2, 3, 8)
    assert [weight.name for weight in layer.weights] == ["gamma", "beta"]
    assert model.output_shape == (None, None, 8)
    assert loaded.layers[-1].get_config() == layer.get_config()
    np.testing.assert_array_equal(model(x), loaded(x))


def test_values():
    layer = LayerNormalization()
    layer.build((1, 2))
    layer.set_weights([np.array([2.0, 2.0]), np.array([10.0, 0.0])])

    np.testing.assert_allclose(
        layer(np.array([[1.0, 3.0]])), [[8, 2]], atol=1e-4
    )


@pytest.mark.parametrize(
    "policy, tolerance, arguments",
    [
        ("float32", 1e-5, {}),
        ("float32", 1e-5, {"epsilon": 0.1}),
        ("mixed_bfloat16", 0.05, {}),
        ("mixed_float16", 0.01, {}),
    ],
)
def test_agrees_with_keras(seed, policy, tolerance, arguments):
    x = 5 + 3 * normal(2, 3, 8)
    layer = built(dtype=policy, **arguments)
    theirs = keras.layers.LayerNormalization(epsilon=layer.epsilon)
    theirs.build((None, None, 8))
    theirs.set_weights(layer.get_weights())

    assert layer(x).dtype == layer.compute_dtype
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(layer(x), "float32")),
        theirs(x),
        atol=tolerance,
        rtol=tolerance,
    )


def test_equal_features_give_beta(seed):
    layer = built(dtype="mixed_float16")
    output = ops.cast(layer(np.full((1, 8), 6e4)), "float32")

    np.testing.assert_allclose(output[0], layer.beta, atol=1e-2)


@pytest.mark.parametrize("epsilon", [0, -1e-5, math.nan, "small"])
def test_errors(epsilon):
    with pytest.raises(ValueError, match="Received: epsilon="):
        LayerNormalization(epsilon)
