"""The safetensors format."""

import json
import math

import numpy as np
import tensorflow as tf

from kseq.conversion.weights import in_memory
from kseq.user_error import UserError

_LARGEST_HEADER = 100_000_000  # bytes, the limit of the format
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": tf.bfloat16.as_numpy_dtype,
    "I64": "<i8",
    "I32": "<i4",
}


def read_safetensors(path):
    """The tensors of a file.

    Args:
        path: `pathlib.Path`.

    Returns:
        A dict, name -> array.

    Raises:
        UserError: if it is not such a file, or has a type that is not read.

    Reference:
        https://github.com/huggingface/safetensors, "Format".
    """
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or start > min(len(data), _LARGEST_HEADER):
        raise UserError(f"{path} is broken: it has no safetensors header.")
    try:
        header = json.loads(data[8:start].tobytes())
        tensors = (
            (name, _tensor(data[start:], **entry))
            for name, entry in header.items()
            if name != "__metadata__"
        )
        return in_memory(tensors, most=len(data) - start)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is broken: {error}") from None


def write_safetensors(path, tensors):
    """Writes tensors to a file.

    Args:
        path: `pathlib.Path`.
        tensors: dict, name -> array, which is written in float32.

    Raises:
        OSError: if it cannot be written.
    """
    header, start = {"__metadata__": {"format": "pt"}}, 0
    for name, values in tensors.items():
        end = start + 4 * values.size
        header[name] = {
            "dtype": "F32",
            "shape": values.shape,
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, "<f4").data)


def _tensor(data, dtype, shape, data_offsets):
    if dtype not in _TYPES:
        raise ValueError(f"tensors of {dtype} are not supported")
    begin, end = data_offsets
    if not all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end)):
        raise ValueError("sizes must not be negative")
    size = math.prod(shape) * np.dtype(_TYPES[dtype]).itemsize
    if end > len(data) or end - begin != size:
        raise ValueError(f"no tensor of {shape} fits its bytes")
    values = np.frombuffer(data[begin:end], _TYPES[dtype])
    return values.reshape(shape)
