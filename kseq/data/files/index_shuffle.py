"""A random permutation that is computed and not stored."""

import tensorflow as tf

# With 4, the default of TensorFlow, neighbors correlate (-0.15 to 0.16), and
# numbers of large permutations with almost the same keys by 0.97.
_ROUNDS = 8


def index_shuffle(indices, count, keys) -> tf.Tensor:
    """A random permutation of `count` numbers, applied to some of them.

    Args:
        indices: (N,) int64, from 0 to below `count`.
        count: int.
        keys: (3,) or (N, 3) int, each from 0 to below 2^31, or -1: what
            chooses the permutation of each index.

    Returns:
        (N,) int64.

    Example:
    >>> order = index_shuffle(tf.range(5, dtype=tf.int64), 5, [1, 0, 0])
    >>> sorted(order.numpy().tolist())
    [0, 1, 2, 3, 4]

    Reference:
        Beaulieu et al. 2015, The SIMON and SPECK lightweight block ciphers.
    """
    size = tf.size(indices)
    keys = tf.cast(tf.stack(keys), tf.int32)
    return tf.raw_ops.RandomIndexShuffle(
        index=indices,
        seed=tf.broadcast_to(keys, [size, 3]),
        max_index=tf.fill([size], tf.cast(count - 1, tf.int64)),
        rounds=_ROUNDS,
    )
