"""The messages of TensorFlow Serving's gRPC services."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow_serving.apis.classification_pb2 import ClassificationResponse
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from kseq.server.request_error import RequestError
from kseq.server.signatures import (
    SignatureRequest,
    check_classifies,
    check_shape,
    classes_and_scores,
    find_signature,
)

# The fields in which clients look for values, such as `float_val`.
_FIELDS = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "bfloat16": "half",
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int"),
    "int64": "int64",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool": "bool",
    "object": "string",
}
_STRING = 64  # bytes, of an empty one
_AT_ONCE = 8192  # values


def read_predict(request, signatures, limit):
    """Reads a `PredictRequest`.

    Args:
        request: `PredictRequest`.
        signatures: dict, name -> `SignatureDef`.
        limit: int, bytes of a tensor. A message may represent a larger one,
            because its last value fills the rest of the tensor.

    Returns:
        A `SignatureRequest`.

    Raises:
        RequestError: if the contract refuses it.
    """
    name = request.model_spec.signature_name
    try:
        name, signature = find_signature(name, signatures)
    except RequestError:  # which REST has in other words
        raise RequestError(
            f'Serving signature key "{name}" not found.', "FAILED_PRECONDITION"
        ) from None
    _check_names(set(request.inputs), set(signature.inputs))
    _check_filter(request.output_filter, signature.outputs)
    inputs = {
        key: _array(key, request.inputs[key], info, limit)
        for key, info in signature.inputs.items()
    }
    return SignatureRequest(name, inputs)


def read_classify(request, signatures, limit):
    """Reads a `ClassificationRequest`; see `read_predict`.

    Returns:
        A `SignatureRequest` with the input `inputs`, (B,) serialized
        `tf.train.Example`s.
    """
    name, signature = find_signature(
        request.model_spec.signature_name, signatures
    )
    check_classifies(name, signature)
    kind, context = request.input.WhichOneof("kind"), b""
    examples = getattr(request.input, kind).examples if kind else []
    if kind == "example_list_with_context":
        with_context = request.input.example_list_with_context
        context = with_context.context.SerializeToString()
    if len(context) * len(examples) > limit:
        raise _too_large("inputs", limit)
    # Merged: a later message overwrites the features of an earlier one.
    serialized = [context + example.SerializeToString() for example in examples]
    if not serialized:
        raise RequestError("Input is empty.")
    return SignatureRequest(name, {"inputs": np.array(serialized, object)})


def predict_response(request, outputs):
    """The `PredictResponse` of outputs, a dict of name -> `np.ndarray`."""
    names = request.output_filter or outputs
    return PredictResponse(
        outputs={name: _tensor(outputs[name]) for name in names}
    )


def classify_response(_, outputs):
    """The `ClassificationResponse` of `classes`, `scores` or both, (B, C)."""
    response = ClassificationResponse()
    rows = zip(*classes_and_scores(outputs), strict=True)
    for row in rows:
        classes = response.result.classifications.add().classes
        for label, score in zip(*row, strict=True):
            classes.add(label=_text(label), score=score)
    return response


def _check_names(sent, expected):
    if sent != expected:
        names = [sorted(s) for s in (sent - expected, expected - sent)]
        extra, missing = map(",".join, names)
        raise RequestError(
            f"input size does not match signature: {len(sent)}!="
            f"{len(expected)}. Sent extra: {{{extra}}}. Missing but required: "
            f"{{{missing}}}."
        )


def _check_filter(names, outputs):
    for name in names:
        if name not in outputs:
            raise RequestError(
                f"output tensor alias not found in signature: {name} Outputs "
                f"expected to be in the set {{{','.join(sorted(outputs))}}}."
            )
    twice = [name for name in set(names) if list(names).count(name) > 1]
    if twice:
        raise RequestError(f"duplicate output tensor alias: {min(twice)}")


def _array(name, tensor, info, limit):
    """The array for an input of a signature; of strings, one of bytes."""
    dtype = tf.dtypes.as_dtype(info.dtype)
    if tensor.dtype != info.dtype:
        raise RequestError(f"Tensor {name} is not of type {dtype.name}")
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or min(shape, default=0) < 0:
        raise RequestError(f"tensor parsing error: {name}")
    check_shape(name, shape, info)
    if _least_bytes(tensor, dtype, math.prod(shape)) > limit:
        raise _too_large(name, limit)
    try:
        value = tf.io.parse_tensor(tensor.SerializeToString(), dtype).numpy()
    except tf.errors.OpError:
        raise RequestError(f"tensor parsing error: {name}") from None
    return np.array(value, object) if dtype == tf.string else value


def _least_bytes(tensor, dtype, size):
    """Its size in memory, if that is more than in the message."""
    if dtype != tf.string:
        return size * dtype.size
    if size <= len(tensor.string_val):
        return 0
    return size * (_STRING + max(map(len, tensor.string_val[-1:]), default=0))


def _too_large(name, limit):
    return RequestError(
        f"Tensor {name} has more than {limit} bytes", "RESOURCE_EXHAUSTED"
    )


def _tensor(array):
    field = _FIELDS.get(array.dtype.name)
    if field is None:
        return tf.make_tensor_proto(array)
    is_text = field == "string"
    dtype = tf.string if is_text else tf.dtypes.as_dtype(array.dtype)
    if field == "half":  # its bits
        array = array.view(np.uint16)
    proto = TensorProto(
        dtype=dtype.as_datatype_enum,
        tensor_shape=tf.TensorShape(array.shape).as_proto(),
    )
    values, flat = getattr(proto, f"{field}_val"), array.ravel()
    for start in range(0, flat.size, _AT_ONCE):  # other threads run between
        values.extend(flat[start : start + _AT_ONCE].tolist())
    return proto


def _text(label):
    try:
        return label.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(
            "A class has a name that is not valid UTF-8", "INTERNAL"
        ) from None
