"""Weights that `torch.save` wrote, read without PyTorch.

A file of PyTorch is a pickle, and to load a pickle is to run a program. Here it
is not loaded: its operations are parsed, and those that make tensors are done.
"""

import functools
import io
import math
import mmap
import pickletools
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.conversion.weights import in_memory
from kseq.terminal import single_line
from kseq.user_error import UserError

_LARGEST_PICKLE = 64_000_000  # bytes, without the tensors
_MOST_SHARED = 8  # names of all tensors; Marian has four for its embedding
_MAGIC = 0x1950A86A20F9469CFC6C  # of the format before PyTorch 1.6
_TYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": tf.bfloat16.as_numpy_dtype,
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
# What broken zips raise, and operations on values that are not those of a
# pickle of tensors. Not MemoryError, of which the file is not the cause.
_BROKEN = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)


def read_torch_weights(path):
    """The tensors of a `state_dict`.

    Args:
        path: `pathlib.Path`, a file of `torch.save`, of any version.

    Returns:
        A dict, name -> array.

    Raises:
        UserError: if it is another file, or asks for a function that rebuilds
            no tensor.
    """
    try:
        if zipfile.is_zipfile(path):
            return _read_zip(path)
        # A map, of which no more can be read than there is.
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return _read_legacy(content, path)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except _BROKEN as error:
        raise UserError(
            f"{path} was not written by torch.save, or is broken: "
            f"{type(error).__name__}: {single_line(error)}"
        ) from None


def _arrays(found, path):
    """The tensors of a state_dict, dict of name -> array."""
    if not isinstance(found, dict):
        raise UserError("it holds no state_dict.")
    tensors = (
        (name, value.read())
        for name, value in found.items()
        if isinstance(value, _Tensor)
    )
    return in_memory(tensors, most=_MOST_SHARED * path.stat().st_size)


class _Tensor(NamedTuple):
    """A part of a storage, which may be read later."""

    storage: Callable[[], np.ndarray]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self):
        values = self.storage()
        sizes = (*self.shape, *self.strides, self.offset)
        is_possible = all(type(n) is int and 0 <= n < 2**63 for n in sizes)
        if len(self.shape) != len(self.strides) or not is_possible:
            raise UserError("a tensor has impossible sizes.")
        last = self.offset + sum(
            (size - 1) * stride
            for size, stride in zip(self.shape, self.strides, strict=True)
        )
        if 0 in self.shape:
            return np.zeros(self.shape, values.dtype)
        # With strides of 0 a small storage would fill the memory.
        if max(last + 1, math.prod(self.shape)) > len(values):
            raise UserError("a tensor is longer than its storage.")
        return np.lib.stride_tricks.as_strided(
            values[self.offset :],
            self.shape,
            [stride * values.itemsize for stride in self.strides],
            writeable=False,
        )


class _Global(NamedTuple):
    """The name of a function or a class, which is never looked up."""

    module: str
    name: str


def _update(target, pairs):
    """Adds pairs to a dict; what is no key could take for ever to hash."""
    for key, value in pairs:
        target[_text(key)] = value
    return target


def _text(value):
    if not isinstance(value, str):
        raise UserError(f"its pickle has a {type(value).__name__} as a name.")
    return value


_REBUILDS = {
    _Global("collections", "OrderedDict"): lambda pairs=(): _update({}, pairs),
    _Global("torch._utils", "_rebuild_tensor_v2"): (
        lambda storage, offset, shape, strides, *_: _Tensor(
            storage, offset, shape, strides
        )
    ),
    _Global("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
}
_STORAGES = {
    _Global(module, name)
    for module in ("torch", "torch.storage")
    for name in _TYPES
}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = (
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE"),
)


def _load(file, storage):
    """Reads one pickle of tensors, dicts, lists, numbers and strings.

    Args:
        file: binary file.
        storage: function of a key, the name of a type and a number of values;
            gives a function that reads them.
    """
    stack, marks, memo = [], [], {}

    def popped(count):
        """The last values of the stack, without them."""
        start = len(stack) - count
        values = stack[start:]
        del stack[start:]
        return values

    def to_mark():
        return popped(len(stack) - marks.pop())

    for opcode, value, _ in pickletools.genops(file):
        match opcode.name:
            case "PROTO" | "FRAME" | "STOP":
                continue
            case "MARK":
                marks.append(len(stack))
            case name if name in _EMPTY:
                stack.append(_EMPTY[name]())
            case name if name in _CONSTANTS:
                stack.append(_CONSTANTS[name])
            case name if name in _VALUES:
                stack.append(value)
            case "TUPLE":
                stack.append(tuple(to_mark()))
            case name if name in _TUPLES:
                stack.append(tuple(popped(_TUPLES[name])))
            case "APPEND" | "APPENDS" as name:
                values = to_mark() if name == "APPENDS" else popped(1)
                stack[-1].extend(values)
            case "SETITEM" | "SETITEMS" as name:
                values = to_mark() if name == "SETITEMS" else popped(2)
                pairs = zip(values[::2], values[1::2], strict=True)
                _update(stack[-1], pairs)
            case "BINPUT" | "LONG_BINPUT":
                memo[value] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[value])
            case "GLOBAL":
                stack.append(_known(*value.split(" ")))
            case "STACK_GLOBAL":
                stack.append(_known(*popped(2)))
            case "REDUCE":
                function, arguments = popped(2)
                stack.append(_function(function)(*arguments))
            case "BUILD":  # attributes, such as the versions of layers
                popped(1)
            case "BINPERSID":
                kind, of_type, key, _, size, *_ = stack.pop()
                is_known = isinstance(of_type, _Global) and of_type in _STORAGES
                if kind != "storage" or not is_known or type(size) is not int:
                    raise UserError("it has a storage of an unknown type.")
                found = storage(_text(key), of_type.name, size)
                stack.append(found)
            case name:
                raise UserError(
                    f"its pickle has {name}, which is not supported."
                )
    [found] = stack
    return found


def _known(module, name):
    """A `_Global`; UserError if no tensor is made with it."""
    found = _Global(_text(module), _text(name))
    if found not in _REBUILDS and found not in _STORAGES:
        raise UserError(
            f"it asks for {module}.{name}, and is not opened: a file of "
            "weights needs no such function."
        )
    return found


def _function(name):
    """What rebuilds a tensor or a dict in place of a function."""
    if not isinstance(name, _Global) or name not in _REBUILDS:
        raise UserError("its pickle calls something that is not a function.")
    return _REBUILDS[name]


def _values(content, type_name, size):
    """The bytes of a storage as (N,)."""
    values = np.frombuffer(content, _TYPES[type_name])
    if len(values) < size:
        raise UserError("a storage is shorter than it says.")
    return values[:size]


def _read_zip(path):
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        [name] = [name for name in names if name.endswith("/data.pkl")]
        folder = name.removesuffix("data.pkl")
        if any(each.compress_type for each in file.infolist()):
            raise UserError("its entries are compressed.")
        if file.getinfo(name).file_size > _LARGEST_PICKLE:
            raise UserError("its pickle is too large for a state_dict.")

        @functools.cache
        def content(key):
            return file.read(f"{folder}data/{key}")

        def storage(key, type_name, size):
            return lambda: _values(content(key), type_name, size)

        return _arrays(_load(io.BytesIO(file.read(name)), storage), path)


def _read_legacy(file, path):
    """The format before PyTorch 1.6: pickles, then the storages."""
    sizes, values = {}, {}

    def storage(key, type_name, size):
        sizes.setdefault(key, (type_name, size))
        return lambda: values[key]

    if _load(file, storage) != _MAGIC:
        raise UserError("it was not written by torch.save.")
    _load(file, storage)  # the version of the format
    _load(file, storage)  # sizes of C types; they are little-endian
    found = _load(file, storage)
    for key in map(_text, _load(file, storage)):
        type_name, size = sizes[key]
        count = int.from_bytes(file.read(8), "little")
        if count < size:
            raise UserError("a storage is shorter than it says.")
        width = np.dtype(_TYPES[type_name]).itemsize
        content = file.read(count * width)
        values[key] = _values(content, type_name, count)[:size]
    return _arrays(found, path)
