"""Tables in tf.data."""

import os

import tensorflow as tf

from kseq.data.files.line_dataset import (
    close_with,
    compression_type,
    is_read_by_tf,
    line_dataset,
    plain_copy,
)
from kseq.data.files.text_files import matching_files
from kseq.data.text.pair_table import Layout, PairTable


def table_blocks(table: PairTable, size: int) -> tf.data.Dataset:
    """The rows of a table in blocks of strings, (source (B,), target (B,)).

    A table other than a TSV without quotes, plain or .gz, is copied as plain
    text to an unnamed temporary file, which lives as long as the data set:
    `tf.data` can save its position in lines of text.
    """
    paths, compressions, layouts, copies = [], [], [], []
    for path in matching_files(table.path):
        if not (is_read_by_tf(path) and table.is_plain(path)):
            rows = table.rows_of(path)
            copies.append(
                plain_copy(b"%b\t%b" % (s.text, t.text) for s, t in rows)
            )
            paths.append(f"/dev/fd/{copies[-1]}")
            layouts.append(Layout(2, (0, 1)))
        else:
            paths.append(path)
            layouts.append(table.layout_of(path))
        compressions.append(compression_type(paths[-1]))

    columns = (
        tf.constant([os.fsencode(path) for path in paths]),
        tf.constant(compressions),
        tf.constant([layout.positions for layout in layouts]),
        tf.constant([layout.skipped for layout in layouts], tf.int64),
    )

    def blocks_of(number):
        return _blocks_of_file(size, *(column[number] for column in columns))

    # Numbers, not paths, because a saved position contains the elements before
    # it: a file may have a different path when it is restored.
    blocks = tf.data.Dataset.range(len(paths)).flat_map(blocks_of)
    close_with(blocks, copies)
    return blocks


def _blocks_of_file(size, path, compression, positions, skipped):
    def split(lines):
        # A blank line has blank cells, too.
        width = tf.reduce_max(positions) + 1
        cells = tf.strings.split(lines, "\t").to_tensor(
            "", shape=tf.stack([-1, width])
        )
        return cells[:, positions[0]], cells[:, positions[1]]

    lines = line_dataset(path, compression).skip(skipped)
    return lines.batch(size).map(split)
