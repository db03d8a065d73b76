"""Seeds of random numbers that differ on each device."""

import keras

if keras.backend.backend() == "tensorflow":  # no other has replicas
    import tensorflow as tf

_STRIDE = 0x9E3779B1  # odd, and far from the seeds of other layers


class ReplicaSeeds(keras.random.SeedGenerator):
    """The seeds of a generator, different on each replica of a strategy.

    The state of a generator is a variable, equal on all replicas: without
    this, all of them would drop the same features, and more devices would
    regularize less. With one replica the seeds are those of the generator.

    Args:
        generator: `keras.random.SeedGenerator`, which keeps the state.
    """

    def __init__(self, generator):
        self.generator = generator  # and no state of its own

    def next(self, ordered=True):
        seed = self.generator.next(ordered)
        if keras.backend.backend() != "tensorflow":
            return seed
        replica = tf.distribute.get_replica_context()
        if replica is None or replica.num_replicas_in_sync == 1:
            return seed
        index = tf.cast(replica.replica_id_in_sync_group, seed.dtype)
        return seed + tf.stack([index * _STRIDE, tf.zeros_like(index)])
