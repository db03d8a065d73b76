"""Rows of some items among those of all."""

import tensorflow as tf


def put_rows(nest, places, parts):
    """The same tensors with different rows at some places.

    Args:
        nest: tensors (B, ...).
        places: (N,) int32, different ones.
        parts: the same nest of tensors (N, ...). Zeros fill an axis that is
            shorter than in the other tensor.

    Returns:
        nest of tensors (B, ...).
    """

    def put(old, new):
        size = tf.shape(old)[0]
        sources = tf.tensor_scatter_nd_update(
            tf.range(size), places[:, None], size + tf.range(tf.size(places))
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
    missing = tf.maximum(tf.shape(other) - tf.shape(tensor), 0)
    padding = tf.stack([tf.zeros_like(missing), missing], axis=1)
    padding *= tf.cast(tf.range(tf.rank(tensor)) > 0, tf.int32)[:, None]
    return tf.pad(tensor, padding)
