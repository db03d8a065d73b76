"""The arguments of models: checked, kept as attributes, and given back."""

import inspect
import numbers

import keras

from kseq.user_error import ArgumentError, check_integers


def set_sizes(model, **sizes):
    """Sets attributes that are positive integers.

    Args:
        model: the object that gets the attributes.
        **sizes: int, each under its name.

    Raises:
        ArgumentError: if one is wrong; it names the first.
    """
    check_integers(**sizes)
    for name, size in sizes.items():
        setattr(model, name, int(size))


def set_rates(model, **rates):
    """Sets attributes that are rates of dropout.

    Args:
        model: the object that gets the attributes.
        **rates: float from 0 to 1, each under its name.

    Raises:
        ArgumentError: if one is wrong; it names the first.
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


# Arguments that are left out of a config unless they are used, so that it is
# the same as that of a run which did not know them.
_LATER = {
    "source_layer": None,
    "source_dim": None,
    "coverage": 0.0,
    "ctc": 0.0,
}


def config_of(model, model_class, *layers):
    """The config of a model whose arguments are attributes of the same name.

    Args:
        model: a `keras.Model`.
        model_class: its class, or the one above it that calls this function.
        *layers: names of the arguments that are layers.

    Returns:
        A dict of the named arguments of the `__init__` of `model_class`.
    """
    parameters = inspect.signature(model_class.__init__).parameters.values()
    config = {
        parameter.name: getattr(model, parameter.name)
        for parameter in parameters
        if parameter.name not in ("self", "dtype", "kwargs")
    }
    for name, default in _LATER.items():
        if name in config and config[name] == default:
            del config[name]
    serialize = keras.saving.serialize_keras_object
    config |= {
        name: serialize(config[name]) for name in layers if name in config
    }
    return {**config, "dtype": model.dtype_policy.name}


def with_layers(config, *layers):
    """A config of `config_of`, with its layers created.

    Args:
        config: dict.
        *layers: names of the arguments that are layers.

    Returns:
        A dict of arguments.
    """
    create = keras.saving.deserialize_keras_object
    created = {name: create(config[name]) for name in layers if name in config}
    return {**config, **created}
