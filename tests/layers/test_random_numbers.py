"""Random numbers: by the seed alone, and different on each replica."""

import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import (
    Dropout,
    MultiHeadAttention,
    SentenceDropout,
    SpecAugment,
)
from kseq.layers.random_numbers import random_bits, random_uniform
from tests.layers.arrays import normal

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

TENSORFLOW = keras.backend.backend() == "tensorflow"
ROWS = 40
QUERY = normal(ROWS, 6, 8)
LONG = normal(1, 1024, 8)
MASK = np.ones((ROWS, 6), bool)

# What a replica drops: functions of no arguments, and of the layer's seed.
LAYERS = {
    "dropout": (
        lambda: Dropout(0.5, seed=3),
        lambda layer: layer(np.ones((ROWS, 8), "float32"), training=True),
    ),
    "sentences": (
        lambda: SentenceDropout(0.5, seed=3),
        lambda layer: layer(np.ones((ROWS, 9, 2), "int32"), training=True),
    ),
    "time": (
        lambda: SpecAugment(feature_masks=0, time_width=3, seed=3),
        lambda layer: layer(QUERY, MASK, training=True)[0],
    ),
    "features": (
        lambda: SpecAugment(time_masks=0, seed=3),
        lambda layer: layer(QUERY, MASK, training=True)[0],
    ),
    "stretch": (
        lambda: SpecAugment(time_masks=0, feature_masks=0, stretch=0.5, seed=3),
        lambda layer: layer(QUERY, MASK, training=True)[0],
    ),
    "attention": (
        lambda: MultiHeadAttention(2, 4, dropout=0.5),
        lambda layer: layer(QUERY, QUERY, training=True),
    ),
    "attention in blocks": (
        lambda: MultiHeadAttention(2, 4, dropout=0.5),
        lambda layer: layer(LONG, LONG, training=True),
    ),
}


@pytest.mark.skipif(not TENSORFLOW, reason="other backends have no replicas")
@pytest.mark.parametrize("name", LAYERS)
def test_replicas_draw_different_masks(name, request):
    strategy = request.getfixturevalue("two_devices")
    make, call = LAYERS[name]
    with strategy.scope():
        layer = make()
        call(layer)  # built
    for _ in range(3):
        drawn = strategy.run(lambda: call(layer))
        first, second = strategy.experimental_local_results(drawn)
        different = np.any(np.array(first) != np.array(second))
        assert different

    # Their state is one variable nevertheless, as a checkpoint expects.
    states = [
        part.numpy()
        for variable in layer.variables
        if "seed" in variable.path
        for part in strategy.experimental_local_results(variable.value)
    ]
    assert len(states) == 2
    np.testing.assert_array_equal(*states)


def numbers(shape=(500, 60), seed=3, calls=1, draw=random_bits):
    """Those of the last of several calls."""
    generator = keras.random.SeedGenerator(seed)
    for _ in range(calls):
        drawn = ops.convert_to_numpy(draw(shape, generator))
    return drawn


def test_a_seed_decides_and_every_call_is_different():
    np.testing.assert_array_equal(numbers(calls=2), numbers(calls=2))
    others = (numbers(seed=4), numbers(calls=2), numbers(seed=4, calls=2))
    for other in others:
        assert (numbers() % 2**30 == other % 2**30).mean() < 1e-3


def test_bits_are_independent(seed):
    """Of each other; of those of the next call; of those of the next seed."""
    drawn = [numbers(seed=seed + n, calls=m) for n in (0, 1) for m in (1, 2)]
    bits = np.array(drawn).reshape(4, 1, -1) >> np.arange(30)[:, None] & 1
    bits = bits.reshape(120, -1)
    assert np.abs(bits.mean(axis=1) - 0.5).max() < 0.02
    correlation = np.corrcoef(bits) - np.eye(120)
    assert np.abs(correlation).max() < 0.04


def test_uniform_numbers_are_below_1(seed):
    drawn = np.sort(numbers(seed=seed, draw=random_uniform).ravel())
    assert 0 <= drawn[0] < 1e-3 and 1 - 1e-3 < drawn[-1] < 1
    assert drawn.dtype == "float32"
    expected = (np.arange(drawn.size) + 0.5) / drawn.size
    np.testing.assert_allclose(drawn, expected, atol=0.02)


@pytest.mark.skipif(not TENSORFLOW, reason="others have no host memory")
def test_no_seed_is_made_in_the_memory_of_the_host():
    """Nor do the numbers depend on who compiles them."""
    generator = keras.random.SeedGenerator(3)

    def draw():
        return random_uniform((5, 7), generator)

    plain = tf.function(draw)
    graph = plain.get_concrete_function().graph
    types = {operation.type for operation in graph.get_operations()}
    assert "StatelessRandomUniformFullIntV2" in types
    assert "StatelessRandomGetKeyCounter" not in types

    first = plain()
    generator.state.assign([3, 0])
    by_xla = tf.function(draw, jit_compile=True)()
    np.testing.assert_array_equal(first, by_xla)
    np.testing.assert_array_equal(generator.state, [3, 1])
