"""The arguments of models: checked, kept as attributes, and given back."""

import inspect
import numbers

from kseq.layers.check_integers import check_integers
from kseq.user_error import ArgumentError


def set_sizes(model, **sizes):
    """Sets attributes that are positive integers.

    Args:
        model: whatever they are of.
        **sizes: int, each by its name.

    Raises:
        ArgumentError: that names the first wrong one.
    """
    check_integers(**sizes)
    for name, size in sizes.items():
        setattr(model, name, int(size))


def set_rates(model, **rates):
    """Sets attributes that are rates of dropout.

    Args:
        model: whatever they are of.
        **rates: float from 0 to 1, each by its name.

    Raises:
        ArgumentError: that names the first wrong one.
    """
    for name, rate in rates.items():
        if not isinstance(rate, numbers.Real) or not 0 <= rate <= 1:
            raise ArgumentError(
                f"{name} must be from 0 to 1. Received: {name}={rate}"
            )
        setattr(model, name, float(rate))


def check_heads(model_dim, num_heads):
    """Raises unless heads divide the features evenly.

    Args:
        model_dim: int.
        num_heads: int.

    Raises:
        ArgumentError: if they do not.
    """
    if model_dim % num_heads:
        raise ArgumentError(
            "model_dim must be a multiple of num_heads. "
            f"Received: model_dim={model_dim}, num_heads={num_heads}"
        )


def config_of(model, model_class):
    """The config of a model whose arguments are attributes of the same name.

    Args:
        model: a `keras.Model`.
        model_class: its class, or the one above it that calls this function.

    Returns:
        A dict of the named arguments of the `__init__` of `model_class`.
    """
    parameters = inspect.signature(model_class.__init__).parameters.values()
    config = {
        parameter.name: getattr(model, parameter.name)
        for parameter in parameters
        if parameter.name not in ("self", "dtype", "kwargs")
    }
    return {**config, "dtype": model.dtype_policy.name}
