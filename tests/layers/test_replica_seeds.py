"""Each replica draws random numbers of its own."""

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
from kseq.layers.replica_seeds import ReplicaSeeds
from tests.layers.arrays import normal

TENSORFLOW = keras.backend.backend() == "tensorflow"
ROWS = 40
QUERY = normal(ROWS, 6, 8)
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


def test_one_replica_draws_as_the_generator_does():
    """The same bits as with the generator itself, and the same state after."""
    ours = ReplicaSeeds(keras.random.SeedGenerator(3))
    theirs = keras.random.SeedGenerator(3)
    for _ in range(3):
        np.testing.assert_array_equal(
            keras.random.uniform((5,), seed=ours),
            keras.random.uniform((5,), seed=theirs),
        )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(ours.generator.state),
        ops.convert_to_numpy(theirs.state),
    )
