"""Tensors in JSON, as TensorFlow Serving reads and writes them."""

import base64
import binascii
import itertools
import json
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from kseq.server.request_error import RequestError

_DEEPEST = 32  # dimensions of a tensor
_DEFAULT = "serving_default"


class SignatureRequest(NamedTuple):
    """What a body asks for.

    Args:
        signature: str, its name.
        inputs: dict, name -> `np.ndarray`.
        is_row: bool, whether it gives `instances`, and gets `predictions`.
    """

    signature: str
    inputs: dict[str, Any]
    is_row: bool


def read_object(body):
    """The JSON object of a body.

    Args:
        body: bytes.

    Returns:
        dict.

    Raises:
        RequestError: if it is none.
    """
    if not body.strip():
        raise RequestError("JSON Parse error: The document is empty")
    try:
        found = json.loads(body.decode("utf-8"))
    except RecursionError:
        raise RequestError("JSON Parse error: Too many levels") from None
    except ValueError as error:
        at = f" at offset: {error.pos}" if hasattr(error, "pos") else ""
        raise RequestError(f"JSON Parse error: Invalid value.{at}") from None
    if not isinstance(found, dict):
        raise RequestError("JSON Value: Is not object")
    return found


def read_predict(body, signatures):
    """Reads the body of `:predict`.

    Args:
        body: bytes.
        signatures: dict, name -> `SignatureDef`.

    Returns:
        A `SignatureRequest`.

    Raises:
        RequestError: if the contract refuses it.
    """
    request = read_object(body)
    if "instances" in request and "inputs" in request:
        raise RequestError(
            "Not formatted correctly: expecting only one of "
            "'inputs' or 'instances'"
        )
    if "instances" not in request and "inputs" not in request:
        raise RequestError("Missing 'inputs' or 'instances' key")
    name, signature = _signature(request, signatures)
    is_row = "instances" in request
    read = _columns_of_rows if is_row else _columns
    values = read(request["instances" if is_row else "inputs"], signature)
    return SignatureRequest(
        name,
        {
            key: _array(key, values[key], signature.inputs[key])
            for key in values
        },
        is_row,
    )


def read_classify(body, signatures):
    """Reads the body of `:classify`.

    Args:
        body: bytes.
        signatures: dict, name -> `SignatureDef`.

    Returns:
        A `SignatureRequest` with the input `inputs`, (B,) serialized
        `tf.train.Example`s.

    Raises:
        RequestError: if the contract refuses it.
    """
    request = read_object(body)
    name, signature = _signature(request, signatures)
    if set(signature.inputs) != {"inputs"} or not {
        "classes",
        "scores",
    } <= set(signature.outputs):
        raise RequestError(
            f'Signature "{name}" is not one of classification: expected the '
            "input `inputs` and the outputs `classes` and `scores`",
        )
    examples = request.get("examples")
    if not isinstance(examples, list) or not examples:
        raise RequestError("Expected a list of objects as 'examples'")
    context = _features(request.get("context", {}))
    serialized = [
        tf.train.Example(
            features=tf.train.Features(
                feature={**context, **_features(example)}
            )
        ).SerializeToString()
        for example in examples
    ]
    inputs = {"inputs": np.array(serialized, object)}
    return SignatureRequest(name, inputs, is_row=True)


def predictions(outputs, is_row):
    """The answer to `:predict`.

    Args:
        outputs: dict, name -> `np.ndarray`.
        is_row: bool, see `SignatureRequest`.

    Returns:
        A dict for `json_bytes`.

    Raises:
        RequestError: if the outputs do not fit into this form.
    """
    if is_row:
        sizes = {name: value.shape[:1] for name, value in outputs.items()}
        expected = next(iter(sizes.values()))
        for name, size in sizes.items():
            if not size or size != expected:
                raise RequestError(
                    f"Tensor name: {name} has inconsistent batch size: "
                    f"{(*size, 0)[0]} expecting batch size: "
                    f"{(*expected, 0)[0]}"
                )
    values = {name: _values(name, value) for name, value in outputs.items()}
    key = "predictions" if is_row else "outputs"
    if len(values) == 1:
        return {key: next(iter(values.values()))}
    if not is_row:
        return {key: values}
    rows = zip(*values.values(), strict=True)
    return {key: [dict(zip(values, row, strict=True)) for row in rows]}


def classifications(outputs):
    """The answer to `:classify`, a dict for `json_bytes`.

    Args:
        outputs: dict with `classes` and `scores`, (B, C).
    """
    classes = _values("classes", outputs["classes"])
    scores = _values("scores", outputs["scores"])
    rows = zip(classes, scores, strict=True)
    return {
        "results": [list(map(list, zip(*row, strict=True))) for row in rows]
    }


def json_bytes(value):
    """JSON, with NaN and infinities as TensorFlow Serving writes them."""
    return json.dumps(value, ensure_ascii=False).encode()


def _signature(request, signatures):
    name = request.get("signature_name", "") or _DEFAULT
    if not isinstance(name, str):
        raise RequestError("'signature_name' key must be a string value")
    if name not in signatures or name.startswith("__"):
        raise RequestError(
            f'Serving signature name: "{name}" not found in signature def'
        )
    return name, signatures[name]


def _columns_of_rows(instances, signature):
    """dict, name -> the list of its values in each instance."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("Expected a list of values as 'instances'")
    names = list(signature.inputs)
    are_objects = isinstance(instances[0], dict) and not _is_bytes(instances[0])
    if not are_objects:
        if len(names) != 1:
            raise RequestError(
                "instances is a plain list, but expecting list of objects as "
                "multiple input tensors required as per tensorinfo_map"
            )
        return {names[0]: instances}
    for number, instance in enumerate(instances):
        if not isinstance(instance, dict) or set(instance) != set(names):
            raise RequestError(
                f"Failed to process element: {number} of 'instances' list: "
                f"expected an object with {names}"
            )
    return {name: [each[name] for each in instances] for name in names}


def _columns(inputs, signature):
    """dict, name -> value."""
    names = list(signature.inputs)
    if not isinstance(inputs, dict) or _is_bytes(inputs):
        if len(names) != 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as "
                "multiple input tensors required as per tensorinfo_map"
            )
        return {names[0]: inputs}
    for name in names:
        if name not in inputs:
            raise RequestError(
                f"Missing named input: {name} in 'inputs' object"
            )
    return {name: inputs[name] for name in names}


def _is_bytes(value):
    return isinstance(value, dict) and list(value) == ["b64"]


def _array(name, value, info):
    """An `np.ndarray` of what a signature takes; RequestError where it is not.

    Args:
        name: of the input.
        value: JSON.
        info: `TensorInfo` of the input.
    """
    dtype = tf.dtypes.as_dtype(info.dtype)
    leaves, shape = _leaves(value)
    expected = tf.TensorShape(info.tensor_shape)
    if not expected.is_compatible_with(shape):
        raise RequestError(
            f"Tensor {name}, with shape {shape}, does not fit the expected "
            f"shape {expected}"
        )
    if dtype == tf.string:
        leaves = [_bytes(leaf) for leaf in leaves]
        array = np.empty(len(leaves), object)
        array[:] = leaves
        return array.reshape(shape)
    for kind in set(map(type, leaves)) - _types(dtype):
        leaf = next(leaf for leaf in leaves if type(leaf) is kind)
        raise _wrong_type(leaf, dtype.name)
    try:
        return np.array(leaves, dtype.as_numpy_dtype).reshape(shape)
    except OverflowError:
        raise RequestError(
            f"Tensor {name} has a number out of the range of {dtype.name}"
        ) from None


def _leaves(value):
    """(what is in nested lists, their shape); RequestError if it is ragged."""
    shape, leaves = [], [value]
    while leaves and isinstance(leaves[0], list):
        if len(shape) == _DEEPEST:
            raise RequestError(f"Expected at most {_DEEPEST} dimensions")
        wrong = next((x for x in leaves if not isinstance(x, list)), None)
        if wrong is not None:
            raise _wrong_type(wrong, "list")
        sizes = {len(leaf) for leaf in leaves}
        if len(sizes) > 1:
            raise RequestError(
                f"Encountered list at unexpected size: {max(sizes)} at level: "
                f"{len(shape)} expected size: {len(leaves[0])}"
            )
        shape += sizes
        leaves = list(itertools.chain.from_iterable(leaves))
    return leaves, shape


def _bytes(leaf):
    try:
        if isinstance(leaf, str):
            return leaf.encode("utf-8")
        if _is_bytes(leaf) and isinstance(leaf["b64"], str):
            return base64.b64decode(leaf["b64"], validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise RequestError(
            "JSON Value: a string is not valid UTF-8, or not base64"
        ) from None
    raise _wrong_type(leaf, "string")


def _types(dtype):
    if dtype.is_bool:
        return {bool}
    return {int} if dtype.is_integer else {int, float}


def _wrong_type(value, expected):
    names = {str: "String", dict: "Object", list: "Array", bool: "Bool"}
    name = names.get(type(value), "Null" if value is None else "Number")
    text = json.dumps(value)
    return RequestError(
        f"JSON Value: {text:.50} Type: {name} is not of expected type: "
        f"{expected}"
    )


def _features(example):
    """dict, name -> `tf.train.Feature`."""
    if not isinstance(example, dict):
        raise _wrong_type(example, "object")
    return {name: _feature(name, value) for name, value in example.items()}


def _feature(name, value):
    try:
        name.encode()
    except UnicodeEncodeError:
        raise RequestError("The name of a feature is not UTF-8") from None
    if _is_bytes(value) or not isinstance(value, list):
        value = [value]
    types = set(map(type, value))
    if types <= {int}:
        if any(not -(2**63) <= number < 2**63 for number in value):
            raise RequestError(f"Feature {name!r} has a number out of range")
        return tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    if types <= {int, float}:
        try:
            return tf.train.Feature(float_list=tf.train.FloatList(value=value))
        except (OverflowError, ValueError):
            raise RequestError(
                f"Feature {name!r} has a number out of range"
            ) from None
    strings = [_bytes(each) for each in value]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=strings))


def _values(name, array):
    """Nested lists of what JSON knows."""
    if array.dtype == object:
        write = _base64 if name.endswith("_bytes") else _text
        flat = [write(name, value) for value in array.ravel()]
        strings = np.empty(len(flat), object)
        strings[:] = flat
        return strings.reshape(array.shape).tolist()
    if array.dtype.kind in "iub" or array.dtype == np.float64:
        return array.tolist()
    # The shortest digits that give the same float32, as repr does.
    return array.astype(np.float32).astype(str).astype(float).tolist()


def _base64(_, value):
    return {"b64": base64.b64encode(value).decode()}


def _text(name, value):
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(
            f"Tensor name: {name} has a string that is not valid UTF-8",
            "INTERNAL",
        ) from None
