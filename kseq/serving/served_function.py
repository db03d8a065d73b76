"""Functions of named tensors, for signatures."""

import inspect

import tensorflow as tf


def served_function(method, inputs):
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

    def call(*tensors):
        return method(**dict(zip(inputs, tensors, strict=True)))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature(
        [inspect.Parameter(name, kind) for name in inputs]
    )
    return tf.function(
        call, input_signature=list(inputs.values()), autograph=False
    )
