"""Inputs of signatures, independent of their encoding."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from kseq.server.request_error import RequestError

_DEFAULT = "serving_default"


class SignatureRequest(NamedTuple):
    """The model, version and signature of a request.

    Args:
        signature: str, its name.
        inputs: dict, name -> `np.ndarray`.
        is_row: bool, whether it is JSON with `instances`, and gets
            `predictions`.
        is_stream: bool, whether its answer is wanted while it is being found.
    """

    signature: str
    inputs: dict[str, Any]
    is_row: bool = False
    is_stream: bool = False


def find_signature(name, signatures):
    """The signature that a request names.

    Args:
        name: str; the default signature if it is empty.
        signatures: dict, name -> `SignatureDef`.

    Returns:
        Its name and `SignatureDef`.

    Raises:
        RequestError: if there is none.
    """
    name = name or _DEFAULT
    if name not in signatures or name.startswith("__"):
        raise RequestError(
            f'Serving signature name: "{name}" not found in signature def'
        )
    return name, signatures[name]


def check_classifies(name, signature):
    """RequestError unless a signature is one of classification."""
    outputs = set(signature.outputs)
    is_one = outputs and outputs <= {"classes", "scores"}
    if set(signature.inputs) != {"inputs"} or not is_one:
        raise RequestError(
            f'Signature "{name}" is not one of classification: expected the '
            "input `inputs` and the outputs `classes`, `scores` or both",
        )


def classes_and_scores(outputs):
    """Both outputs of a signature of classification, (B, C).

    Args:
        outputs: dict, which may have one of them: the names of classes are
            then empty, or their scores 0, as TensorFlow Serving's are.

    Raises:
        RequestError: if their shapes differ.
    """
    classes, scores = outputs.get("classes"), outputs.get("scores")
    if classes is None:
        classes = np.full(scores.shape, b"", object)
    if scores is None:
        scores = np.zeros(classes.shape, np.float32)
    if classes.ndim != 2 or classes.shape != scores.shape:
        raise RequestError(
            f"Expected `classes` and `scores` of one shape (batch, classes); "
            f"found {classes.shape} and {scores.shape}"
        )
    return classes, scores


def check_shape(name, shape, info):
    """RequestError if a shape is not that of an input, a `TensorInfo`."""
    expected = tf.TensorShape(info.tensor_shape)
    if not expected.is_compatible_with(shape):
        raise RequestError(
            f"Tensor {name}, with shape {shape}, does not fit the expected "
            f"shape {expected}"
        )
