"""Lines of files in tf.data, to train on them."""

import os
import tempfile
import weakref
from collections.abc import Iterable

import tensorflow as tf

from kseq.data.files.compressed_files import compression_of
from kseq.data.files.text_files import BYTE_ORDER_MARK

_BUFFER = 2**18  # bytes, as in tf.data


def line_dataset(path, compression) -> tf.data.Dataset:
    """The lines of one file, those of `read_lines`, as a data set of strings.

    Args:
        path: scalar string.
        compression: scalar string, see `compression_type`.
    """
    # Not `tf.data.TextLineDataset`, whose saved position contains the path: the
    # file may have a different one when it is restored.
    opened = tf.raw_ops.TextLineDataset(
        filenames=path, compression_type=compression, buffer_size=_BUFFER
    )
    lines = tf.data.experimental.from_variant(
        opened, tf.TensorSpec((), tf.string)
    )
    first = lines.take(1).map(
        lambda line: tf.strings.regex_replace(line, b"^" + BYTE_ORDER_MARK, b"")
    )
    return first.concatenate(lines.skip(1))


def is_read_by_tf(path: str) -> bool:
    """Whether `line_dataset` reads a file, which may be compressed."""
    return compression_of(path) in ("", ".gz")


def compression_type(path: str) -> str:
    """What `tf.data` calls the compression of a file that it reads."""
    return "GZIP" if compression_of(path) else ""


def plain_copy(lines: Iterable[bytes]) -> int:
    """Writes an unnamed file of lines, and returns its descriptor.

    `tf.data` reads it as `/dev/fd/N`, and can save its position in it.
    """
    with tempfile.TemporaryFile() as file:
        # A first line may begin with a mark that is text.
        file.write(BYTE_ORDER_MARK)
        for line in lines:
            file.write(b"%b\n" % line)
        file.flush()
        return os.dup(file.fileno())


def close_with(dataset: tf.data.Dataset, descriptors: list[int]):
    """Closes copies when a data set, and all that it is part of, are gone."""
    # A data set keeps those that it is made from alive.
    weakref.finalize(dataset, _close, descriptors)


def _close(descriptors):
    for descriptor in descriptors:
        os.close(descriptor)
