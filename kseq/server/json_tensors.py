"""Tensors in JSON, as TensorFlow Serving reads and writes them."""

import base64
import itertools
import json

import numpy as np
import tensorflow as tf

from kseq.server.request_error import RequestError
from kseq.server.signatures import check_shape

_DEEPEST = 32  # dimensions of a tensor


def to_array(name, value, info):
    """The array for an input of a signature.

    Args:
        name: str, of the input.
        value: JSON.
        info: `TensorInfo` of the input.

    Returns:
        An `np.ndarray`; of strings, an array of bytes.

    Raises:
        RequestError: for a value of a different type or shape.
    """
    dtype = tf.dtypes.as_dtype(info.dtype)
    leaves, shape = _leaves(value)
    check_shape(name, shape, info)
    if dtype == tf.string:
        strings = [to_bytes(leaf) for leaf in leaves]
        return np.array(strings, object).reshape(shape)
    for kind in set(map(type, leaves)) - _types(dtype):
        leaf = next(leaf for leaf in leaves if type(leaf) is kind)
        raise wrong_type(leaf, dtype.name)
    if dtype.is_integer:
        for leaf in leaves:
            if not dtype.min <= leaf <= dtype.max:
                raise wrong_type(leaf, dtype.name)
    return to_numbers(leaves, dtype, f"Tensor {name}").reshape(shape)


def to_values(name, array):
    """Nested lists for JSON.

    Args:
        name: str, of the output; one that ends in `_bytes` is base64.
        array: `np.ndarray`, of float, int, bool or bytes.

    Raises:
        RequestError: for a string that is not valid UTF-8, and for complex
            numbers.
    """
    if array.dtype == object:
        write = _base64 if name.endswith("_bytes") else _text
        strings = [write(name, value) for value in array.ravel()]
        return np.array(strings, object).reshape(array.shape).tolist()
    if array.dtype.kind == "c":
        raise RequestError(
            f"Tensor name: {name} has complex numbers, which JSON does not "
            "have",
            "UNIMPLEMENTED",
        )
    if array.dtype.kind in "iub" or array.dtype == np.float64:
        return array.tolist()
    # The shortest digits that give the same float32, as repr does. Zeros,
    # most of what is padded, have them already.
    values = np.array(array, np.float64)
    others = values != 0
    digits = array[others].astype(np.float32).astype(str)
    values[others] = digits.astype(np.float64)
    return values.tolist()


def to_bytes(leaf):
    """The bytes of a string; RequestError if it is not one."""
    if isinstance(leaf, str):
        return leaf.encode("utf-8")
    if is_bytes(leaf) and isinstance(leaf["b64"], str):
        try:
            return _from_base64(leaf["b64"])
        except ValueError:
            raise RequestError("Unable to base64 decode") from None
    raise wrong_type(leaf, "string")


def to_numbers(values, dtype, name):
    """An `np.ndarray`; RequestError if a float is out of range."""
    try:
        with np.errstate(over="raise"):
            return np.array(values, dtype.as_numpy_dtype)
    except (OverflowError, FloatingPointError):
        raise RequestError(
            f"{name} has a number out of the range of {dtype.name}"
        ) from None


def is_bytes(value):
    """Whether JSON represents bytes: an object with base64."""
    return isinstance(value, dict) and list(value) == ["b64"]


def type_name(value):
    """What TensorFlow Serving calls the type of a JSON value."""
    names = {str: "String", dict: "Object", list: "Array"}
    if isinstance(value, bool):
        return f"{value}"
    return names.get(type(value), "Null" if value is None else "Number")


def wrong_type(value, expected):
    """The `RequestError` for a value that is not of an expected type."""
    name = type_name(value)
    containers = {dict: "{...}", list: "[...]"}  # which may be deep
    text = containers.get(type(value)) or json.dumps(value)
    return RequestError(
        f"JSON Value: {text:.50} Type: {name} is not of expected type: "
        f"{expected}"
    )


def _from_base64(text):
    """Decodes base64 as `absl::Base64Unescape` does, or raises ValueError.

    White space may be anywhere, padding may be omitted, and its character may
    be a dot.
    """
    text = text.encode("ascii").translate(None, b" \t\n\v\f\r")
    digits = text.rstrip(b"=.")
    missing = -len(digits) % 4
    if len(text) - len(digits) not in (0, missing):
        raise ValueError("padding")
    return base64.b64decode(digits + b"=" * missing, validate=True)


def _leaves(value):
    """The leaves of nested lists and their shape; RequestError if ragged."""
    shape, leaves = [], [value]
    while leaves and isinstance(leaves[0], list):
        if len(shape) == _DEEPEST:
            raise RequestError(f"Expected at most {_DEEPEST} dimensions")
        wrong = [leaf for leaf in leaves if not isinstance(leaf, list)]
        if wrong:
            raise wrong_type(wrong[0], "list")
        sizes = {len(leaf) for leaf in leaves}
        if len(sizes) > 1:
            raise RequestError(
                f"Encountered list at unexpected size: {max(sizes)} at level: "
                f"{len(shape)} expected size: {len(leaves[0])}"
            )
        shape += sizes
        leaves = list(itertools.chain.from_iterable(leaves))
    return leaves, shape


def _types(dtype):
    if dtype.is_bool:
        return {bool}
    return {int} if dtype.is_integer else {int, float}


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
