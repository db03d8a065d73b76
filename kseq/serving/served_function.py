"""Functions of tensors in a graph that every machine can run."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.types.experimental import PolymorphicFunction


def served_function(
    method: Callable[..., dict[str, tf.Tensor]],
    inputs: Mapping[str, tf.TensorSpec],
) -> PolymorphicFunction:
    """A function of tensors by keyword, traced once for all their shapes.

    Args:
        method: callable of the tensors, by keyword; gives a dict of tensors.
        inputs: dict, name -> `tf.TensorSpec` of the same name.

    Returns:
        A `tf.function` that `tf.saved_model.save` takes as a signature.

    Example:
        >>> text = tf.TensorSpec((None,), tf.string, name="text")
        >>> length = served_function(
        ...     lambda text: {"length": tf.strings.length(text)},
        ...     {"text": text},
        ... )
        >>> length(text=tf.constant(["rose"]))["length"].numpy()
        array([4], dtype=int32)
    """
    # A partial, for TensorFlow counts the tracings of functions that share
    # their code together, and warns of many.
    call: Any = functools.partial(_by_keyword, method, tuple(inputs))
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature(
        [inspect.Parameter(name, kind) for name in inputs]
    )
    return served_part(call, input_signature=list(inputs.values()))


def served_part(
    method: Callable[..., Any], **options: Any
) -> PolymorphicFunction:
    """A `tf.function` of a method that signatures call.

    Its graph has only operations with a kernel for a CPU, also where it is
    traced beside a GPU, and whoever calls it first.

    Args:
        method: callable of tensors.
        **options: see `tf.function`.
    """
    # Layers take long to import, and loading an export needs none.
    from kseq.layers.cudnn import without_cudnn

    method = without_cudnn()(method)
    return tf.function(method, autograph=False, **options)


def _by_keyword(method, names, *tensors):
    return method(**dict(zip(names, tensors, strict=True)))
