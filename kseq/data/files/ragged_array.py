"""Rows of different lengths, in memory or in files."""

import functools
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data.files.data_error import DataError

_BLOCK = 2**16  # rows whose lengths are read together


class RaggedArray:
    """Rows of different lengths, which are read at random.

    The rows are one after the other in `values`. In files, both arrays are
    mapped into memory: only what is read takes memory, and a data set reads
    them without Python.

    Args:
        values: (M, ...) array; or a `RaggedArray` of M rows, such as the
            sentences of N documents.
        offsets: (N + 1,) int64: row n is `values[offsets[n]:offsets[n + 1]]`.

    Example:
    >>> rows = RaggedArray(np.array([4, 5, 6]), np.array([0, 2, 2, 3]))
    >>> rows.save("ids")
    >>> rows = RaggedArray.open("ids", "int64", (3,))
    >>> rows.gather([2, 0, 1]).to_list()
    [[6], [4, 5], []]
    """

    def __init__(self, values: "np.ndarray | RaggedArray", offsets: np.ndarray):
        self.values = values
        self.offsets = offsets

    @classmethod
    def of(cls, rows: "tf.RaggedTensor | RaggedArray") -> "RaggedArray":
        """The same rows, in memory where they are; not copied."""
        if isinstance(rows, cls):
            return rows
        is_nested = isinstance(rows.values, tf.RaggedTensor)
        values = cls.of(rows.values) if is_nested else rows.values.numpy()
        return cls(values, rows.row_splits.numpy().astype(np.int64))

    @classmethod
    def open(
        cls, path: str | os.PathLike, dtype: str, shape: tuple[int, ...]
    ) -> "RaggedArray":
        """Maps the files that `save` has written, with `values` of this shape.

        Raises:
            DataError: a file is missing, does not have its size, or does not
                fit the other.
        """
        values = mapped(f"{path}.values", dtype, tuple(shape))
        return cls._joined(path, values, f"{path}.offsets")

    @classmethod
    def open_nested(
        cls, path: str | os.PathLike, dtype: str, shape: tuple[int, ...]
    ) -> "RaggedArray":
        """Maps rows of rows, which have `path`.rows beside those of `open`."""
        return cls._joined(path, cls.open(path, dtype, shape), f"{path}.rows")

    @classmethod
    def _joined(cls, path, values, file):
        size = os.path.getsize(file) if os.path.isfile(file) else 0
        offsets = mapped(file, "int64", (size // 8,))
        check_offsets(path, offsets, len(values))
        return cls(values, offsets)

    def save(self, path: str | os.PathLike):
        """Writes `path`.values and `path`.offsets, arrays without a header."""
        self.values.tofile(f"{path}.values")
        self.offsets.astype(np.int64).tofile(f"{path}.offsets")

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, number) -> np.ndarray:
        return self.values[self.offsets[number] : self.offsets[number + 1]]

    def blocks_of_lengths(self):
        """The lengths of all rows, in blocks: (B,) int64 arrays."""
        for start in range(0, len(self), _BLOCK):
            yield np.diff(self.offsets[start : start + _BLOCK + 1])

    def lengths(self, numbers) -> tf.Tensor:
        """The lengths of some rows, (B,) int64."""
        numbers = tf.cast(numbers, tf.int64)
        ends = read(self._offsets, numbers + 1)
        return ends - read(self._offsets, numbers)

    def lengths_inside(self, numbers) -> tf.RaggedTensor:
        """The lengths of the rows in some rows, (B, None) int64."""
        places = self._places(numbers)
        lengths = self.values.lengths(places.flat_values)
        return places.with_flat_values(lengths)

    def gather(self, numbers) -> tf.RaggedTensor:
        """Some rows, (B, None, ...)."""
        places = self._places(numbers)
        if isinstance(self.values, RaggedArray):
            rows = self.values.gather(places.flat_values)
            return places.with_values(rows)
        values = read(self._values, places.flat_values)
        return places.with_flat_values(values)

    def flat_values(self) -> tf.Tensor:
        """All values, (M, ...)."""
        if isinstance(self.values, RaggedArray):
            return self.values.flat_values()
        return self._values

    def _places(self, numbers):
        numbers = tf.cast(numbers, tf.int64)
        return tf.ragged.range(
            read(self._offsets, numbers),
            read(self._offsets, numbers + 1),
            row_splits_dtype=tf.int64,
        )

    def padded(self, numbers, width) -> tf.Tensor:
        """Some rows of ids as (B, width) int32, with PAD after each."""
        shape = -1, tf.cast(width, tf.int64)
        ids = self.gather(numbers).to_tensor(PAD, shape=shape)
        return tf.cast(ids, tf.int32)

    @functools.cached_property
    def _values(self):
        return as_tensor(self.values)

    @functools.cached_property
    def _offsets(self):
        return as_tensor(self.offsets)


def check_offsets(path: str | os.PathLike, offsets: np.ndarray, count: int):
    """Raises DataError unless offsets ascend from 0 to a number of values.

    Others would read the wrong rows, or fill the memory.
    """
    fits = len(offsets) and offsets[0] == 0 and offsets[-1] == count
    blocks = range(0, len(offsets), _BLOCK)
    if not fits or any(
        (np.diff(offsets[start : start + _BLOCK + 1]) < 0).any()
        for start in blocks
    ):
        raise DataError(f"{path} is broken: its files do not match.")


def check_counts(path: str | os.PathLike, *counts: int | tuple[int, ...]):
    """Raises DataError unless all files have the same number or shape."""
    if len({*counts}) > 1:
        raise DataError(f"{path} is broken: its files do not match.")


def dtype_of_ids(vocab_size: int) -> str:
    """The smallest type of a file of ids: two bytes for up to 2^16 pieces."""
    return "uint16" if vocab_size <= 2**16 else "int32"


def mapped(
    path: str | os.PathLike, dtype: str, shape: tuple[int, ...]
) -> np.ndarray:
    """Maps an array without a header into memory.

    Raises:
        DataError: the file is missing, or does not have its size.
    """
    dtype = np.dtype(dtype)
    found = os.path.getsize(path) if os.path.isfile(path) else None
    expected = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if found != expected:
        raise DataError(
            f"{path} is missing or truncated: expected {expected} bytes, found "
            f"{found or 0}."
        )
    if not expected:  # cannot be mapped
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", shape=shape)


def as_tensor(array: np.ndarray) -> tf.Tensor:
    """A tensor of an array, which data sets capture: it is on the CPU.

    An array in a file is mapped and takes no memory.
    """
    with tf.init_scope(), tf.device("CPU:0"):
        if not isinstance(array, np.memmap):
            return tf.constant(array)
        # Only an array that could be written is shared; nobody writes it.
        # `ImmutableConst` maps a file, too, but TensorFlow copies it once.
        file = Path(array.filename).absolute()
        shared = np.memmap(file, array.dtype, "c", shape=array.shape)
        capsule = np.asarray(shared).__dlpack__()
        return tf.experimental.dlpack.from_dlpack(capsule)


def read(array: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """`tf.gather` from a tensor of `as_tensor`.

    Outside of a graph, TensorFlow would first copy the whole array to a GPU.
    """
    if not tf.executing_eagerly():
        return tf.gather(array, places)
    with tf.device("CPU:0"):
        return tf.gather(array, places)
