"""Configs and copies of layers."""

import inspect

import keras


def arguments_of(layer, layer_class, *objects):
    """The arguments of a layer or model, attributes of the same name.

    Args:
        layer: a layer, or a model.
        layer_class: its class, or the one above it that calls this function.
        *objects: names of the arguments with a config, such as layers.

    Returns:
        A dict of the named arguments of the `__init__` of `layer_class`, none
        if it has only that of Keras, without its dtype.
    """
    own = vars(layer_class).get("__init__", lambda: None)
    serialize = keras.saving.serialize_keras_object
    arguments = {
        name: getattr(layer, name)
        for name in inspect.signature(own).parameters
        if name not in ("self", "dtype", "kwargs")
    }
    return arguments | {name: serialize(arguments[name]) for name in objects}


def config_of(layer, layer_class, *objects):
    """The `get_config` of a layer, see `arguments_of`."""
    config = super(layer_class, layer).get_config()
    return {**config, **arguments_of(layer, layer_class, *objects)}


def with_layers(config, *layers):
    """A config in which the arguments of these names are layers."""
    create = keras.saving.deserialize_keras_object
    created = {name: create(config[name]) for name in layers if name in config}
    return {**config, **created}


def copy_of(layer, **changes):
    """A new layer with the config of another and changes of it, or None."""
    if layer is None:
        return None
    return type(layer).from_config({**layer.get_config(), **changes})
