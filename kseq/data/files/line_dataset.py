"""Lines of files in tf.data, to train on them."""

import tensorflow as tf

from kseq.data.files.text_files import BYTE_ORDER_MARK

_BUFFER = 2**18  # bytes, as in tf.data


def line_dataset(path, compression) -> tf.data.Dataset:
    """The lines of one file, those of `read_lines`, as a data set of strings.

    Args:
        path: scalar string.
        compression: scalar string, see `compression_of`.
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
