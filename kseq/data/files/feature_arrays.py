"""Arrays of features and their names, in .npz files."""

import io
import math
import mmap
import os
import struct
import zipfile

import numpy as np
from numpy.lib.npyio import NpzFile

from kseq.data.files.data_error import DataError

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_CHECKED = 2**20  # bytes at once
_OF_A_MEMBER = 30  # bytes, before its name
_LARGEST_RATIO = 100  # of the arrays to their compressed file
_FREE = 2**28  # bytes of arrays that a file of any size may have


def read_arrays(path, opened, needed, optional):
    """Reads arrays of an .npz file.

    Those that are not compressed are mapped into memory, which the system can
    take back.

    Args:
        path: for messages.
        opened: file.
        needed: names of arrays.
        optional: the same.

    Returns:
        A dict of arrays.

    Raises:
        DataError: it is not such a file, or lacks an array.
    """
    try:
        # Not np.load, which returns an array for an .npy file.
        with NpzFile(opened) as file:
            check_expansion(path, opened, file.zip)
            names = set(file.files)
            if missing := {*needed} - names:
                listed = " and ".join(f"`{name}`" for name in needed)
                raise DataError(
                    f"{path}: expected the arrays {listed}; "
                    f"found no {', '.join(sorted(missing))}."
                )
            wanted = names & {*needed, *optional}
            found = {name: _array(path, opened, file, name) for name in wanted}
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{path} does not fit into memory.") from None
    except Exception:  # NumPy reads a header with the parser of Python
        raise DataError(
            f"{path} cannot be read: it is truncated, or not an .npz of arrays."
        ) from None
    for name, array in found.items():
        if not isinstance(array, np.ndarray):  # but the bytes of a file
            raise DataError(f"{path}: {name} is not an array.")
        # TensorFlow reads no other order of bytes.
        native = array.dtype.newbyteorder("=")
        found[name] = array.astype(native, copy=False)
    return found


def check_expansion(path, opened, archive):
    """DataError if the arrays of a small file would fill the memory.

    Of an array no more is read than the size that the archive declares.
    """
    size = opened.seek(0, os.SEEK_END)
    expanded = sum(member.file_size for member in archive.infolist())
    if expanded > _FREE + _LARGEST_RATIO * size:
        raise DataError(
            f"{path} expands from {size} to {expanded} bytes, or is damaged. "
            "Save it with np.savez instead of np.savez_compressed."
        )


def _array(path, opened, file, name):
    try:
        array = _mapped(opened, file.zip, f"{name}.npy")
        return file[name] if array is None else array
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        expected = "numbers of one type, such as float32"
        if name == "names":
            expected = "strings: names=np.array(names, dtype=str)"
        raise DataError(
            f"{path}: `{name}` is an array of Python objects; expected one of "
            f"{expected}."
        ) from None


def _mapped(opened, archive, name):
    """An array in a file that is not compressed; None of any other."""
    if isinstance(opened, io.BytesIO) or name not in archive.namelist():
        return None
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED:
        return None
    with archive.open(member) as content:
        read_header = _HEADERS.get(np.lib.format.read_magic(content))
        if read_header is None:
            return None
        shape, is_fortran, dtype = read_header(content)
        header = content.tell()
        while content.read(_CHECKED):  # to the end, which checks its sum
            pass
    count = math.prod(shape)
    size = header + count * dtype.itemsize
    if dtype.hasobject or not count or size != member.file_size:
        return None
    opened.seek(member.header_offset + _OF_A_MEMBER - 4)
    lengths = struct.unpack("<HH", opened.read(4))  # of its name and the rest
    start = member.header_offset + _OF_A_MEMBER + sum(lengths) + header
    file = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    values = np.frombuffer(file, dtype, count, start)
    return values.reshape(shape, order="F" if is_fortran else "C")


def check_numbers(path, features):
    """DataError unless an array has numbers that TensorFlow reads."""
    if features.dtype.kind not in "fiu" or features.dtype.itemsize > 8:
        raise DataError(
            f"{path}: expected `features` that are numbers; found "
            f"{features.dtype}."
        )


def as_names(path, names, count, kind):
    """An array of `count` strings as a list; DataError unless all differ."""
    if names.shape != (count,) or names.dtype.kind not in "US":
        raise DataError(
            f"{path}: expected `names`, a string for each of the {count} "
            f"{kind}s; found {names.dtype} of the shape {names.shape}."
        )
    try:
        names = [os.fsdecode(name) for name in names.tolist()]
    except (SystemError, ValueError):
        raise DataError(f"{path}: `names` has invalid characters.") from None
    first = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{path}: {kind} {number} has no name.")
        if name in first:
            raise DataError(
                f"{path}: {name!r:.100} is the name of two {kind}s, "
                f"{first[name]} and {number}."
            )
        first[name] = number
    return names


def check_finite(path, features, names, kind):
    """DataError unless all features are finite in float32."""
    for number, (name, values) in enumerate(zip(names, features, strict=True)):
        if values.dtype.kind != "f":
            continue
        with np.errstate(over="ignore"):
            values = values.astype("float32", copy=False)
        if not np.isfinite(values).all():
            raise DataError(
                f"{path}: the features of {kind} {number + 1}, "
                f"{name!r:.100}, are not all finite."
            )
