"""A model from a description that may be broken or hostile."""

import math
import os
import sys
from collections import Counter
from typing import Any

import keras
import tensorflow as tf

from kseq.files.json_files import nodes
from kseq.runs import RunError

# What Keras's own classes in a model are. No other is made.
_KINDS = (
    keras.Operation,  # layers and models too
    keras.Initializer,
    keras.Regularizer,
    keras.constraints.Constraint,
    keras.dtype_policies.DTypePolicy,
    keras.random.SeedGenerator,
)
# These of them run code or read files that their config names.
_REFUSED = {
    *("Lambda", "TFSMLayer", "TorchModuleWrapper"),
    *("JaxLayer", "FlaxLayer"),
    *("IndexLookup", "StringLookup", "IntegerLookup", "TextVectorization"),
}
# Keras's descriptions of values.
_VALUES = {
    *("__keras_tensor__", "__tensor__", "__numpy__"),
    *("__slice__", "__ellipsis__"),
}
_SPARE = 4096  # values in variables of any other shape


def described_model(
    description: dict[str, Any],
    path: str | os.PathLike,
    weights: list[tf.Tensor],
) -> keras.Model:
    """Creates a model from its description, if the weights fit it.

    Only registered classes and Keras's own layers, initializers and the like
    are made, and no larger variables than the weights are.

    Args:
        description: dict of `keras.saving.serialize_keras_object`.
        path: of the file that it is from, for the message.
        weights: list of tensors, those of `model.variables`.

    Returns:
        A `keras.Model`; its variables are not yet assigned.

    Raises:
        RunError: if the description is not one of a model with these weights.
    """
    _check(description, path, len(weights))
    limit = _Limit(path, weights)
    try:
        with tf.variable_creator_scope(limit):
            model = keras.saving.deserialize_keras_object(
                description, safe_mode=True
            )
    except (MemoryError, tf.errors.ResourceExhaustedError):
        raise
    except Exception as error:
        if limit.error:
            raise limit.error from None
        reason = type(error).__name__
        if "safe_mode" not in str(error):  # Keras advises to turn it off
            reason += f": {error}".partition("\n")[0]
        raise RunError(
            f"{path} does not describe a model that this version can build: "
            f"{reason:.200}"
        ) from error
    if not isinstance(model, keras.Model):
        raise RunError(
            f"{path} does not describe a model. Received: "
            f"{type(model).__name__}"
        )
    return model


class _Limit:
    """A creator of variables of the shapes that the weights have.

    Each shape may come twice as often as among the weights: a layer in the
    config of a model is made with its variables, and the model may then make
    its own copy of it.
    """

    def __init__(self, path, weights):
        self.path = path
        self.left = Counter(tuple(value.shape) for value in weights * 2)
        self.spare = _SPARE
        self.error = None

    def __call__(self, create, **options):
        shape = _shape(options["initial_value"])
        if self.left[shape]:
            self.left[shape] -= 1
        else:
            self.spare -= max(1, math.prod(shape))
        if self.spare < 0:
            self.error = RunError(
                f"{self.path} does not fit the weights: its model is larger, "
                f"with a variable of the shape {shape}."
            )
            raise self.error
        return create(**options)


def _shape(value):
    if callable(value):  # traced, so that nothing is computed
        traced = tf.function(value, autograph=False).get_concrete_function()
        value = traced.structured_outputs
    return tuple(value.shape)


def _check(description, path, count):
    """Raises unless all classes are known and layers are not too many."""
    for node in nodes(description):
        if not isinstance(node, dict):
            continue
        if "class_name" in node and not _is_known(node):
            raise RunError(
                f"{path} names {node.get('module')!s:.80}."
                f"{node['class_name']!s:.80}, which is not registered and not "
                "a layer of Keras that can be loaded. If it is your own, "
                "import its module first."
            )
        for key, value in node.items():
            if "layers" in key and type(value) is int and value > count:
                raise RunError(
                    f"{path} does not fit the weights: they are {count} "
                    f"variables. Received: {key}={value}"
                )


def _is_known(node):
    name, module = node["class_name"], node.get("module")
    registered = node.get("registered_name")
    if name == "function":
        registered = node.get("config")
    if not isinstance(name, str):
        return False
    if isinstance(registered, str) and (
        keras.saving.get_registered_object(registered) is not None
    ):
        return True
    if name in _VALUES:
        return True
    if not isinstance(module, str) or module.split(".")[0] != "keras":
        return False
    found = getattr(sys.modules.get(module), name, None)
    return (
        isinstance(found, type)
        and issubclass(found, _KINDS)
        and name not in _REFUSED
    )
