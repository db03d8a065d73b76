"""All GPUs of the machine."""

import tensorflow as tf


def device_strategy():
    """MirroredStrategy where there are several GPUs, else the one device.

    Returns:
        A `tf.distribute.Strategy`; make and compile the model in its scope.
    """
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()
