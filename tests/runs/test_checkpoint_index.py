"""Indexes that would end the process, or fill the memory."""

import contextlib
import hashlib
import struct
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto

from kseq.runs.checkpoint_files import (
    BrokenCheckpointError,
    read_checkpoint,
    write_checkpoint,
)
from kseq.runs.checkpoint_index import _values, check_index


@pytest.fixture
def path(tmp_path):
    values = {"a": tf.Variable([[1.0, 2.0]]), "b": tf.Variable("text")}
    write_checkpoint(tmp_path, 1, 1, **values)
    return tmp_path / "ckpt-1"


def number(value):
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def block(pairs):
    found = b"".join(
        b"\0" + number(len(key)) + number(len(value)) + key + value
        for key, value in pairs
    )
    return found + struct.pack("<II", 0, 1)


def write_index(path, *entries):
    """A table of one block, without the checksums of blocks."""
    keys = (f"{number}".encode() for number in range(len(entries)))
    values = [entry.SerializeToString() for entry in entries]
    content = block([(b"", b""), *zip(keys, values, strict=True)])
    start = len(content) + 5
    index = block([(b"z", number(0) + number(len(content)))])
    places = number(0) + number(0) + number(start) + number(len(index))
    footer = places + bytes(48 - len(places))
    Path(f"{path}.index").write_bytes(
        content + bytes(5) + index + bytes(5) + footer
    )


def entry(shape=(1, 2), size=8, dtype=tf.float32, slices=0):
    found = BundleEntryProto(size=size)
    found.dtype = getattr(dtype, "as_datatype_enum", dtype)
    for each in shape:
        found.shape.dim.add().size = each
    for _ in range(slices):
        found.slices.add()
    return found


def test_what_tensorflow_has_written(path):
    check_index(path)
    values = _values(Path(f"{path}.index").read_bytes())
    found = map(BundleEntryProto.FromString, values)
    sizes = [[dim.size for dim in each.shape.dim] for each in found]
    assert sorted(sizes) == [[], [], [1, 2]]
    assert read_checkpoint(str(path))["a"].numpy().tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry((-5, 2))], "impossible shape"),
        ([entry((1,) * 255, 4)], "impossible shape"),
        ([entry((2**40, 2**40))], "impossible shape"),
        ([entry((2**40, 2**40, 0), 0)], "impossible shape"),
        ([entry((2**40, 2))], "does not have the size"),
        ([entry((1, 2), 7)], "does not have the size"),
        ([entry((2**34,), 99, tf.string)], "does not have the size"),
        ([entry((2**34,), 2**36)], "but their files have"),
        ([entry((2**34,), 0, slices=1)], "but their files have"),
        ([entry((100,), 400) for _ in range(99)], "but their files have"),
    ],
)
def test_tensors_that_there_cannot_be(path, entries, message):
    """TensorFlow aborts, or allocates what a shape says."""
    write_index(path, entry())
    check_index(path)
    write_index(path, *entries)
    with pytest.raises(ValueError, match=message):
        check_index(path)
    digest = hashlib.sha256(Path(f"{path}.index").read_bytes()).hexdigest()
    Path(f"{path}.sha256").write_text(f"{digest}  ckpt-1.index\n")
    with pytest.raises(BrokenCheckpointError, match=message):
        read_checkpoint(str(path))


def test_an_index_that_is_no_table(path):
    file = Path(f"{path}.index")
    content = file.read_bytes()
    for place in range(len(content)):
        for damaged in (
            content[:place],
            content[:place] + b"\xff" + content[place + 1 :],
        ):
            file.write_bytes(damaged)
            with contextlib.suppress(ValueError, TypeError):
                check_index(path)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        check_index(path)
