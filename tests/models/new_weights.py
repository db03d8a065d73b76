"""Weights for a model that several tests share: building it takes longer."""

import numpy as np


def new_weights(model, first):
    """Around those that it had first, drawn anew; gives the model."""
    for variable, value in zip(model.variables, first, strict=True):
        if "float" in variable.dtype:
            value = value + np.random.normal(size=value.shape) / 5
        variable.assign(value)
    return model
