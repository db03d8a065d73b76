import keras
import numpy as np
import pytest

from kseq.layers import GridEncoder, PyramidalEncoder
from kseq.models import FeatureClassifier

LAYERS = {
    "frames": lambda: PyramidalEncoder(8, 2),
    "cells": lambda: GridEncoder(8, num_cells=12),
}


def make(kind="frames", **settings):
    return FeatureClassifier(
        5, 3, source_layer=LAYERS[kind](), attention_units=4, **settings
    )


def inputs(lengths, width):
    source = np.random.normal(size=(len(lengths), width, 5)).astype("float32")
    mask = np.arange(width) < np.array(lengths)[:, None]
    return {"source": source, "source_mask": mask}


@pytest.mark.parametrize("kind", LAYERS)
def test_padding_changes_nothing(seed, kind):
    model = make(kind)
    short = inputs([8, 4], 8)
    pad = [(0, 0), (0, 4)]
    wide = {
        "source": np.pad(short["source"], [*pad, (0, 0)], constant_values=9),
        "source_mask": np.pad(short["source_mask"], pad),
    }
    found, expected = model(wide), model(short)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_explains_by_weights_of_real_positions(seed):
    model = make()
    given = inputs([8, 4], 8)
    explained = model.explain(given)
    np.testing.assert_allclose(explained["logits"], model(given), atol=1e-6)
    weights = explained["attention"]  # of two frames each
    np.testing.assert_allclose(np.sum(weights, axis=1), 1, atol=1e-6)
    assert np.all(weights[1, 2:] == 0) and np.all(weights[0] > 0)


@pytest.mark.parametrize("kind", LAYERS)
def test_config(seed, kind):
    model = make(kind, dropout=0.2)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(model)
    )
    again.set_weights(model.get_weights())
    given = inputs([8, 4], 8)
    np.testing.assert_array_equal(again(given), model(given))
    assert again.dropout == 0.2


@pytest.mark.parametrize(
    "wrong", [{"num_classes": 0}, {"attention_units": -1}, {"dropout": 1.5}]
)
def test_arguments(wrong):
    arguments = {"source_dim": 5, "num_classes": 3, "attention_units": 4}
    [name] = wrong
    with pytest.raises(ValueError, match=f"Received: {name}="):
        FeatureClassifier(
            source_layer=LAYERS["frames"](), **(arguments | wrong)
        )
