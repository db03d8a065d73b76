"""Arrays of .npz files."""

import io
import mmap
import zipfile

import numpy as np
import pytest

from kseq.data.files.data_error import DataError
from kseq.data.files.feature_arrays import read_arrays

VALUES = np.arange(24, dtype="float16").reshape(2, 3, 4)
ARRAYS = {
    "features": VALUES,
    "names": np.array(["a", "b"]),
    "scale": np.asfortranarray(VALUES[0]),
}


def read(path):
    with open(path, "rb") as file:
        return read_arrays(path, file, ("features", "names"), ("scale",))


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, memoryview) and isinstance(array.obj, mmap.mmap)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_is_not_compressed_is_not_read_into_memory(tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    found = read(tmp_path / "a.npz")
    assert found.keys() == ARRAYS.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert is_mapped(array) == (save is np.savez)


def test_bytes_in_memory_are_read(tmp_path):
    file = io.BytesIO()
    np.savez(file, **ARRAYS)
    found = read_arrays("a.npz", file, ("features", "names"), ())
    np.testing.assert_array_equal(found["features"], VALUES)


def test_one_changed_bit_is_found(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.index(VALUES.tobytes()) + 9] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match="truncated, or not an"):
        read(tmp_path / "a.npz")


def test_a_small_file_that_would_fill_the_memory(tmp_path):
    path = tmp_path / "a.npz"
    about = {"shape": (75 * 2**20,), "fortran_order": False, "descr": "<f4"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("features.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, about)
            for _ in range(75):
                file.write(bytes(4 * 2**20))
        archive.writestr("names.npy", b"")
    size = path.stat().st_size
    with pytest.raises(DataError, match=f"expands from {size} to 3145729"):
        read(path)


@pytest.mark.parametrize("shape", ["(2, 3, 5)", "(2, 3, 3)"])
def test_a_shape_of_another_size_is_refused(tmp_path, shape):
    content = io.BytesIO()
    np.save(content, VALUES)
    lying = content.getvalue().replace(b"(2, 3, 4)", shape.encode())
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("features.npy", lying)
        archive.writestr("names.npy", content.getvalue())
    if shape == "(2, 3, 5)":
        with pytest.raises(DataError, match="truncated, or not an"):
            read(tmp_path / "a.npz")
    else:  # NumPy ignores what follows
        assert read(tmp_path / "a.npz")["features"].shape == (2, 3, 3)
