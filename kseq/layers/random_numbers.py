"""Random numbers of layers, different on each device."""

import keras
from keras import ops

if keras.backend.backend() == "tensorflow":  # no other has replicas
    import tensorflow as tf

_BITS = 30
_STRIDE = 0x9E3779B1  # odd, and far from the seeds of other layers
_PHILOX = 1  # the algorithm of TensorFlow's that is the same on all devices
_FLOAT_BITS = 24  # a float32 holds integers of 24 bits


def random_bits(shape, generator):
    """Random integers, whose lowest 30 bits are independent.

    The state of a generator is a variable, equal on all replicas of a strategy:
    without more, all of them would drop the same features, and more devices
    would regularize less. Here each replica has a key of its own.

    On TensorFlow, the state itself is the key and the counter of Philox, where
    `keras.random` hashes it first, in the memory of the host: on a GPU, every
    dropout would wait for its seed.

    Args:
        shape: tuple of ints and of () int tensors.
        generator: `keras.random.SeedGenerator`, which keeps the state.

    Returns:
        Integers of that shape, int32.

    Reference:
        Salmon et al. 2011, Parallel Random Numbers: As Easy as 1, 2, 3.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.random.randint(shape, 0, 2**_BITS, seed=generator)
    # Not unstacked, which a GPU leaves to the host.
    state = _replica_state(generator)
    seed, count = (tf.bitcast(state[i], tf.uint64) for i in range(2))
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape,
        key=seed[None],
        # The numbers of a call are counted in the lower half.
        counter=tf.stack([tf.zeros_like(count), count]),
        alg=_PHILOX,
        dtype=tf.int32,
    )


def random_uniform(shape, generator):
    """Random numbers in [0, 1), float32; see `random_bits`."""
    bits = random_bits(shape, generator)
    bits = ops.bitwise_and(bits, 2**_FLOAT_BITS - 1)
    return ops.cast(bits, "float32") / 2**_FLOAT_BITS


def _replica_state(generator):
    """The next state of a generator, (2,) int64, with the replica's seed."""
    state = generator.next()
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return state
    index = tf.cast(replica.replica_id_in_sync_group, state.dtype)
    return state + tf.stack([index * _STRIDE, tf.zeros_like(index)])
