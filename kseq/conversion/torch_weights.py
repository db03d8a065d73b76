"""Weights that `torch.save` wrote, read without PyTorch.

A file of PyTorch is a pickle, and a pickle can call any function. Here it can
call those that rebuild a tensor, and no others.
"""

import collections
import functools
import io
import pickle
import zipfile

import numpy as np

from kseq.conversion.safetensors import from_bfloat16
from kseq.terminal import single_line
from kseq.user_error import UserError

_LARGEST_PICKLE = 64_000_000  # bytes, without the tensors
_MAGIC = 0x1950A86A20F9469CFC6C  # of the format before PyTorch 1.6
_TYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}


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
        with open(path, "rb") as file:
            return _read_legacy(file)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # unpickling raises what it will
        raise UserError(
            f"{path} is no file of torch.save, or broken: "
            f"{type(error).__name__}: {single_line(error)}"
        ) from None


def _arrays(found):
    if not isinstance(found, dict):
        raise UserError("it holds no state_dict.")
    return {
        name: np.array(value.read())
        for name, value in found.items()
        if isinstance(value, _Tensor)
    }


class _Tensor:
    """A part of a storage, which may be read later."""

    def __init__(self, storage, offset, shape, strides):
        self.storage = storage
        self.offset = offset
        self.shape = tuple(shape)
        self.strides = tuple(strides)

    def read(self):
        values = self.storage()
        sizes = (*self.shape, *self.strides, self.offset)
        if len(self.shape) != len(self.strides) or min(sizes, default=0) < 0:
            raise UserError("a tensor has impossible sizes.")
        last = self.offset + sum(
            (size - 1) * stride
            for size, stride in zip(self.shape, self.strides, strict=True)
        )
        if 0 in self.shape:
            return np.zeros(self.shape, values.dtype)
        if last >= len(values):
            raise UserError("a tensor is longer than its storage.")
        return np.lib.stride_tricks.as_strided(
            values[self.offset :],
            self.shape,
            [stride * values.itemsize for stride in self.strides],
            writeable=False,
        )


class _Unpickler(pickle.Unpickler):
    """Knows tensors, dicts, lists, numbers and strings alone."""

    def __init__(self, file, storage):
        super().__init__(file, encoding="utf-8")
        self._storage = storage

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch._utils" and name == "_rebuild_tensor_v2":
            return _rebuilt
        if module == "torch._utils" and name == "_rebuild_parameter":
            return lambda tensor, *_: tensor
        if module in ("torch", "torch.storage") and name in _TYPES:
            return name
        raise UserError(
            f"it asks for {module}.{name}, and is not opened: a file of "
            "weights needs no such function."
        )

    def persistent_load(self, identifier):
        kind, type_name, key, _, size, *_ = identifier
        if kind != "storage" or type_name not in _TYPES:
            raise UserError(f"it has a {kind} of {type_name}.")
        return self._storage(str(key), type_name, int(size))


def _rebuilt(storage, offset, shape, strides, *_):
    return _Tensor(storage, offset, shape, strides)


def _values(content, type_name, size):
    """The bytes of a storage as (N,)."""
    dtype = _TYPES[type_name]
    if dtype == "bfloat16":
        values = from_bfloat16(content)
    else:
        values = np.frombuffer(content, dtype)
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
        def storage(key, type_name, size):
            @functools.cache
            def read():
                content = file.read(f"{folder}data/{key}")
                return _values(content, type_name, size)

            return read

        return _arrays(_Unpickler(io.BytesIO(file.read(name)), storage).load())


def _read_legacy(file):
    """The format before PyTorch 1.6: pickles, then the storages."""
    storages = {}

    def storage(key, type_name, size):
        storages.setdefault(key, (type_name, size, []))

        def read():
            *_, [values] = storages[key]
            return values

        return read

    def load():
        return _Unpickler(file, storage).load()

    if load() != _MAGIC:
        raise UserError("it is no file of torch.save.")
    load()  # the version of the format
    load()  # sizes of C types; all of them are written little-endian
    found = load()
    for key in load():
        type_name, size, values = storages[str(key)]
        count = int.from_bytes(file.read(8), "little")
        if count < size:
            raise UserError("a storage is shorter than it says.")
        width = np.dtype(
            "<u2" if _TYPES[type_name] == "bfloat16" else _TYPES[type_name]
        ).itemsize
        values.append(_values(file.read(count * width), type_name, size))
    return _arrays(found)
