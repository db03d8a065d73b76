"""The bodies of requests, in TensorFlow Serving's format."""

import json
import re

import numpy as np
import tensorflow as tf

from kseq.server.json_bodies import parse_json
from kseq.server.json_tensors import (
    is_bytes,
    to_array,
    to_bytes,
    to_numbers,
    type_name,
)
from kseq.server.request_error import RequestError
from kseq.server.signatures import (
    SignatureRequest,
    check_classifies,
    find_signature,
)

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_object(body):
    """The JSON object of a body.

    Args:
        body: bytes.

    Returns:
        dict, whose strings are all valid in UTF-8.

    Raises:
        RequestError: if it is not one.
    """
    if not body.strip():
        raise RequestError("JSON Parse error: The document is empty")
    try:
        text = body.decode("utf-8")
        found = parse_json(text, object_pairs_hook=_first_of_each)
        if _SURROGATE.search(body):  # Python takes one alone
            json.dumps(found, ensure_ascii=False).encode()
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
            "Not formatted correctly expecting only one of 'inputs' or "
            "'instances' keys to exist"
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
            key: to_array(key, values[key], signature.inputs[key])
            for key in values
        },
        is_row,
        _is_stream(request),
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
    check_classifies(name, signature)
    if "examples" not in request:
        raise RequestError(
            "When method is classify, key 'examples' is expected and was not "
            "found"
        )
    examples = request["examples"]
    if not isinstance(examples, list):
        raise RequestError("Expecting 'examples' value to be an list/array")
    if not examples:
        raise RequestError("'examples' value is an empty array")
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


def _first_of_each(pairs):
    """A dict in which the first of equal keys counts, as in RapidJSON."""
    found = dict(pairs)
    if len(found) < len(pairs):
        found = dict(reversed(pairs))
    return found


def _signature(request, signatures):
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(
            "not formatted correctly. 'signature_name' key must be a string "
            "value."
        )
    return find_signature(name, signatures)


def _is_stream(request):
    found = request.get("stream", False)
    if not isinstance(found, bool):
        raise RequestError("'stream' key must be a boolean value.")
    return found


def _columns_of_rows(instances, signature):
    """dict, name -> the list of its values in each instance."""
    if not isinstance(instances, list):
        raise RequestError("Excepting 'instances' to be an list/array")
    if not instances:
        raise RequestError("No values in 'instances' array")
    names = list(signature.inputs)
    are_objects = isinstance(instances[0], dict) and not is_bytes(instances[0])
    if not are_objects:
        if len(names) != 1:
            raise RequestError(
                "instances is a plain list, but expecting list of objects as "
                "multiple input tensors required as per tensorinfo_map"
            )
        return {names[0]: instances}
    for number, instance in enumerate(instances):
        if not isinstance(instance, dict) or is_bytes(instance):
            raise RequestError(
                f"Expecting object but got list at item {number} of input list"
            )
        if set(instance) != set(names):
            raise RequestError(
                f"Failed to process element: {number} of 'instances' list. "
                "JSON object: keys must be equal to: "
                f"{','.join(sorted(names))}"
            )
    return {name: [each[name] for each in instances] for name in names}


def _columns(inputs, signature):
    """dict, name -> value."""
    names = list(signature.inputs)
    if not isinstance(inputs, dict) or is_bytes(inputs):
        if len(names) != 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as "
                "multiple input tensors required as per tensorinfo_map"
            )
        return {names[0]: inputs}
    for name in names:
        if name not in inputs:
            raise RequestError(
                f"Missing named input: {name} in 'inputs' object."
            )
    return {name: inputs[name] for name in names}


def _features(example):
    """dict, name -> `tf.train.Feature`."""
    if not isinstance(example, dict):
        raise RequestError(
            f"Example must be JSON object but got JSON {type_name(example)}"
        )
    return {name: _feature(name, value) for name, value in example.items()}


def _feature(name, value):
    if is_bytes(value) or not isinstance(value, list):
        value = [value]
    types = set(map(type, value))
    if not types:
        return tf.train.Feature()
    if types <= {int, bool}:
        numbers = [int(number) for number in value]
        if all(-(2**63) <= number < 2**63 for number in numbers):
            integers = tf.train.Int64List(value=numbers)
            return tf.train.Feature(int64_list=integers)
        raise RequestError(f"Feature {name!r} has a number out of range")
    if types == {float}:
        floats = to_numbers(value, tf.float32, f"Feature {name!r}")
        return tf.train.Feature(float_list=tf.train.FloatList(value=floats))
    strings = [to_bytes(each) for each in value]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=strings))
