"""Rows of some items among those of all."""

import tensorflow as tf

from kseq.decoding.while_loop import INTEGER


def put_rows(nest, places, parts):
    """The same tensors with different rows at some places.

    Args:
        nest: tensors (B, ...).
        places: (N,) int64, different ones.
        parts: the same nest of tensors (N, ...). Zeros fill an axis that is
            shorter than in the other tensor.

    Returns:
        nest of tensors (B, ...).
    """

    def put(old, new):
        size = tf.shape(old)[0]
        sources = tf.tensor_scatter_nd_update(
            tf.cast(tf.range(size), INTEGER),
            places[:, None],
            tf.cast(size + tf.range(tf.size(places)), INTEGER),
        )
        both = tf.concat([_padded(old, new), _padded(new, old)], axis=0)
        rows = tf.gather(both, sources)
        same = zip(old.shape[1:], new.shape[1:], strict=True)
        return tf.ensure_shape(
            rows, (None, *(a if a == b else None for a, b in same))
        )

    return tf.nest.map_structure(put, nest, parts)


def _padded(tensor, other):
    """The tensor, every axis but the first at least as long as in the other."""
    # `tf.pad` of int64 has no kernel for a GPU.
    for axis in range(1, tensor.shape.rank):
        if tensor.shape[axis] is not None is not other.shape[axis]:
            size = max(other.shape[axis] - tensor.shape[axis], 0)
        else:
            size = tf.shape(other)[axis] - tf.shape(tensor)[axis]
            size = tf.maximum(size, 0)
        if not isinstance(size, int) or size > 0:
            shape = tf.unstack(tf.shape(tensor))
            shape[axis] = size
            padding = tf.zeros(shape, tensor.dtype)
            tensor = tf.concat([tensor, padding], axis=axis)
    return tensor
