import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from kseq.data import DataError
from kseq.data.files.ragged_array import RaggedArray

ROWS = [[4, 5, 6], [], [7], [8, 9]]


def rows_of(dtype):
    offsets = np.cumsum([0, *map(len, ROWS)])
    return RaggedArray(np.concatenate(ROWS).astype(dtype), offsets)


@pytest.fixture(params=["uint16", "int32", "int64"])
def mapped(request, tmp_path):
    rows_of(request.param).save(tmp_path / "ids")
    return RaggedArray.open(tmp_path / "ids", request.param, (6,))


def test_rows_are_read_at_random(mapped):
    numbers = [3, 0, 1, 3]
    assert mapped.gather(numbers).to_list() == [ROWS[n] for n in numbers]
    assert mapped.lengths(numbers).numpy().tolist() == [2, 3, 0, 2]
    assert len(mapped) == 4


def test_a_data_set_reads_without_python(mapped):
    numbers = tf.data.Dataset.from_tensor_slices([[0, 2], [3, 1]])
    found = [x.to_list() for x in numbers.map(mapped.gather)]
    assert found == [[ROWS[0], ROWS[2]], [ROWS[3], ROWS[1]]]


def test_rows_of_features():
    rows = RaggedArray(np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 4]))
    assert rows.gather([1, 0]).to_list() == [[], [[0.0, 1.0]]]


def test_no_rows(tmp_path):
    RaggedArray(np.zeros(0, np.int32), np.zeros(1)).save(tmp_path / "ids")
    assert len(RaggedArray.open(tmp_path / "ids", "int32", (0,))) == 0


@pytest.mark.parametrize(
    "offsets",
    [[0, 3, 2, 6], [1, 3, 6], [-3, 3, 6], [0, 2**60, 6], [0, 5], [0, 7], []],
)
def test_offsets_that_do_not_ascend_to_the_end(tmp_path, offsets):
    """They would read other rows, or fill the memory."""
    values = np.zeros(6, np.int32)
    RaggedArray(values, np.array(offsets)).save(tmp_path / "ids")
    with pytest.raises(DataError, match="ids is broken: its files do not"):
        RaggedArray.open(tmp_path / "ids", "int32", (6,))


@pytest.mark.parametrize("name", ["values", "offsets"])
def test_truncated_files_are_refused(tmp_path, name):
    rows_of("int32").save(tmp_path / "ids")
    file = tmp_path / f"ids.{name}"
    os.truncate(file, file.stat().st_size - 8)
    with pytest.raises(DataError, match="ids"):
        RaggedArray.open(tmp_path / "ids", "int32", (6,))
    file.unlink()
    with pytest.raises(DataError, match="ids"):
        RaggedArray.open(tmp_path / "ids", "int32", (6,))


def test_a_gpu_gets_no_copy_of_the_array(mapped):
    """The second device is in its place."""
    readers = []

    def note(op_type, inputs, _, outputs, *__):
        arrays = {id(mapped._values), id(mapped._offsets)}
        if any(id(x) in arrays for x in inputs):
            readers.append((op_type, outputs[0].device[-5:]))

    op_callbacks.add_op_callback(note)
    try:
        with tf.device("CPU:1"):
            mapped.gather([3, 0])
            mapped.lengths([3, 0])
            padded = mapped.padded([3, 0], 4)
    finally:
        op_callbacks.remove_op_callback(note)
    assert {*readers} == {("GatherV2", "CPU:0")}
    assert padded.numpy().tolist() == [[8, 9, 0, 0], [4, 5, 6, 0]]
