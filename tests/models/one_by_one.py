"""A data set of ready batches."""

import tensorflow as tf

from kseq.data.files.device_parts import split_over_devices


def one_by_one(batches):
    """Nests of arrays, (B, ...), in their order."""
    first, *others = map(tf.data.Dataset.from_tensors, batches)
    for other in others:
        first = first.concatenate(other)
    return split_over_devices(first)
