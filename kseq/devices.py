"""All GPUs of the machine, and all machines of the cluster."""

import functools
import json
import os
import sys

import tensorflow as tf


@functools.cache
def device_strategy():
    """The distribution strategy for the devices of this process.

    MultiWorkerMirroredStrategy where TF_CONFIG names several workers: it has to
    be created before TensorFlow does anything else, as `run_recipe` sees to.
    MirroredStrategy where there are several GPUs, else the one device.

    Returns:
        A `tf.distribute.Strategy`; make and compile the model in its scope.
    """
    if _cluster_size() > 1:
        return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def is_chief():
    """Whether this process is the one that writes files.

    Of the workers in TF_CONFIG that is the chief, or the first where there is
    none; and any process without a cluster.
    """
    if _cluster_size() < 2:
        return True
    task = _configuration()["task"]
    if "chief" in _configuration()["cluster"]:
        return task["type"] == "chief"
    return int(task["index"]) == 0


def on_all_machines(value):
    """The numbers that the machines of the cluster have, the chief's first.

    All of them have to ask for it at the same time.

    Args:
        value: float, that of this machine.

    Returns:
        A list of float; of this one alone where there is no cluster.
    """
    if _cluster_size() < 2:
        return [float(value)]
    gathered = _gather()(tf.constant(value, tf.float64))
    strategy = device_strategy()
    return strategy.experimental_local_results(gathered)[0].numpy().tolist()


@functools.cache
def _gather():
    strategy = device_strategy()

    def on_replica(value):
        context = tf.distribute.get_replica_context()
        places = tf.range(context.num_replicas_in_sync)
        is_own = places == context.replica_id_in_sync_group
        own = tf.where(is_own, value, 0)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

    return tf.function(lambda value: strategy.run(on_replica, (value,)))


def end_unless_chief():
    """Ends the process with exit code 0 where it is not the chief.

    Only one machine is needed after training.
    """
    if not is_chief():
        sys.exit(0)


def _configuration():
    return json.loads(os.environ.get("TF_CONFIG") or "{}")


def _cluster_size():
    cluster = _configuration().get("cluster", {})
    return sum(len(cluster.get(kind, ())) for kind in ("chief", "worker"))
