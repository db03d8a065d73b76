"""Files of weights: those of PyTorch and safetensors, broken and hostile."""

import collections
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from kseq.conversion.safetensors import read_safetensors
from kseq.conversion.torch_weights import read_torch_weights
from kseq.user_error import UserError

EXPECTED = {
    "table": np.arange(6.0).reshape(2, 3),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "half": np.array([1.5, -2]),
    "bfloat": np.array([1.5, -2]),
    "number": np.array([3]),
    "part": np.array([3.0, 5.0]),
}
READERS = {
    "zip.bin": read_torch_weights,
    "legacy.bin": read_torch_weights,
    "tiny.safetensors": read_safetensors,
}


@pytest.mark.parametrize("name", READERS)
def test_tensors_are_those_that_were_written(marian, name):
    found = READERS[name](marian / name)
    assert found.keys() == EXPECTED.keys()
    for key, value in EXPECTED.items():
        np.testing.assert_array_equal(found[key], value)
        assert found[key].shape == value.shape


@pytest.mark.parametrize("name", READERS)
def test_a_broken_file_is_one_message(marian, name, tmp_path):
    """Cut anywhere, or with one byte changed, it is read or refused."""
    content = (marian / name).read_bytes()
    path = tmp_path / name
    rng = np.random.default_rng(1)
    refused = 0
    for place in rng.integers(len(content), size=150):
        changed = bytearray(content)
        changed[place] ^= int(rng.integers(1, 256))
        for damaged in (content[:place], bytes(changed)):
            path.write_bytes(damaged)
            try:
                READERS[name](path)
            except UserError as error:
                refused += 1
                assert str(path) in str(error)
                assert "\n" not in str(error).strip()
    assert refused > 140  # at least those that are cut


class _Calls:
    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (os.system, ("touch hacked",)),
        (eval, ("1 + 1",)),
        (getattr, ("text", "upper")),
        (bytearray, (10**12,)),
        (collections.Counter, ("ab",)),
    ],
)
@pytest.mark.parametrize("in_zip", [True, False])
def test_no_function_is_called(
    tmp_path, monkeypatch, function, arguments, in_zip
):
    monkeypatch.chdir(tmp_path)
    hostile = pickle.dumps({"a": _Calls(function, *arguments)}, protocol=2)
    path = tmp_path / "pytorch_model.bin"
    if in_zip:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("archive/data.pkl", hostile)
    else:
        path.write_bytes(hostile)
    with pytest.raises(UserError, match=r"it asks for \w+\.\w+, and is not"):
        read_torch_weights(path)
    assert not (tmp_path / "hacked").exists()


def test_a_zip_that_expands_is_refused(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"\0" * 10**6)
    with pytest.raises(UserError, match="entries are compressed"):
        read_torch_weights(path)


def pickled(tensor, size=4):
    """The pickle of one tensor, by opcodes: (offset, shape, strides)."""
    offset, shape, strides = tensor
    code = io.BytesIO()
    code.write(
        b"\x80\x02}(X\x01\0\0\0act" + b"orch._utils\n_rebuild_tensor_v2\n"
    )
    code.write(b"((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0" + b"0")
    code.write(b"X\x03\0\0\0cpu" + b"J" + size.to_bytes(4, "little") + b"tQ")
    for values in ((offset,), shape, strides):
        numbers = b"".join(
            b"J" + value.to_bytes(4, "little", signed=True) for value in values
        )
        code.write(numbers if values == (offset,) else b"(" + numbers + b"t")
    code.write(b"tRu.")
    return code.getvalue()


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ((0, (2, 2), (2, 1)), None),
        ((0, (5,), (1,)), "longer than its storage"),
        ((3, (2,), (1,)), "longer than its storage"),
        ((0, (2, 2), (3, 1)), "longer than its storage"),
        ((1, (5,), (0,)), "longer than its storage"),
        ((0, (2**31 - 1,) * 2, (0, 0)), "longer than its storage"),
        ((-1, (2,), (1,)), "impossible sizes"),
        ((0, (2,), (-1,)), "impossible sizes"),
        ((0, (2,), (1, 1)), "impossible sizes"),
    ],
)
def test_a_tensor_stays_in_its_storage(tmp_path, tensor, message):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickled(tensor))
        file.writestr("archive/data/0", np.arange(4, dtype="<f4").tobytes())
    if message is None:
        [found] = read_torch_weights(path).values()
        np.testing.assert_array_equal(found, [[0, 1], [2, 3]])
        return
    with pytest.raises(UserError, match=message):
        read_torch_weights(path)


# A tuple of two of the one before, and so on: 2 ** 60 places in few bytes.
ENDLESS = b")q\0" + 60 * b"h\0h\0\x86q\0"
STORAGE = b"X\x07\0\0\0storagectorch\nFloatStorage\n"


@pytest.mark.parametrize(
    "code",
    [
        b"}h\0K\1s.",  # a key
        b"h\0h\0\x93.",  # the name of a function
        b"h\0)R.",  # a function
        b"ccollections\nOrderedDict\n(](h\0K\1\x86etR.",
        b"(" + STORAGE + b"h\0K\0K\4tQ.",  # the key of a storage
        b"(" + STORAGE[:12] + b"h\0K\0K\0K\4tQ.",  # its type
    ],
)
def test_values_that_take_for_ever_to_hash_or_to_show(tmp_path, code):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\4" + ENDLESS + code)
    with pytest.raises(UserError, match=str(path)):
        read_torch_weights(path)


def test_a_small_file_does_not_fill_the_memory(tmp_path):
    """With many names for the same bytes."""
    path = tmp_path / "pytorch_model.bin"
    one = pickled((0, (2048,), (1,)), size=2048)
    body = one[one.index(b"c") : -2]  # of the tensor
    names = [f"{n:04}".encode() for n in range(90)]
    code = [b"\x80\2}(", *(b"X\4\0\0\0" + each + body for each in names)]
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"".join([*code, b"u."]))
        file.writestr("archive/data/0", bytes(4 * 2048))
    with pytest.raises(UserError, match="share their bytes too often"):
        read_torch_weights(path)

    entry = '{"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}'
    header = f'{{"a": {entry}, "b": {entry}}}'.encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(256))
    with pytest.raises(UserError, match="share their bytes too often"):
        read_safetensors(path)


def test_a_storage_that_is_too_short(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickled((0, (9,), (1,)), size=9))
        file.writestr("archive/data/0", bytes(16))
    with pytest.raises(UserError, match="shorter than it says"):
        read_torch_weights(path)


def test_sizes_are_believed_only_if_the_file_has_them(marian, tmp_path):
    """Else memory is allocated for them, and is too small."""
    content = (marian / "legacy.bin").read_bytes()
    path = tmp_path / "pytorch_model.bin"
    text = b"\x80\x04\x8d" + (2**62).to_bytes(8, "little")  # BINUNICODE8
    for hostile in (text, content[:-12] + b"\xff" * 6 + bytes(6)):
        path.write_bytes(hostile)
        with pytest.raises(UserError, match=str(path)):
            read_torch_weights(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{",
        b'{"a": 1}',
        b'{"a": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}',
        b'{"a": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}}',
        b"[" * 100_000,
    ],
)
def test_wrong_headers_of_safetensors(tmp_path, header):
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(UserError, match="is broken"):
        read_safetensors(path)


@pytest.mark.parametrize("content", [b"", b"123", b"\xff" * 16])
def test_files_that_are_something_else(tmp_path, content):
    path = tmp_path / "weights"
    path.write_bytes(content)
    for read in (read_safetensors, read_torch_weights):
        with pytest.raises(UserError, match=str(path)):
            read(path)
