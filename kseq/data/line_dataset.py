"""Lines of files in tf.data, to train on them."""

import tensorflow as tf

from kseq.data.text_files import BYTE_ORDER_MARK


def line_dataset(path, compression) -> tf.data.Dataset:
    """The lines of one file, those of `read_lines`, as a data set of strings.

    Args:
        path: scalar string.
        compression: scalar string, see `compression_of`.
    """
    lines = tf.data.TextLineDataset(path, compression_type=compression)
    first = lines.take(1).map(
        lambda line: tf.strings.regex_replace(line, b"^" + BYTE_ORDER_MARK, b"")
    )
    return first.concatenate(lines.skip(1))
