"""All GPUs of the machine, and all machines of the cluster."""

import contextlib
import functools
import json
import os
import platform
import re
import sys
from pathlib import Path

import tensorflow as tf

# From Ampere on, GPUs of NVIDIA compute with bfloat16.
_COMPUTES_WITH_BFLOAT16 = (8, 0)
# Of a processor, as /proc/cpuinfo names them: x86 and ARM. TensorFlow converts
# to float32 and back where it has none of them, and then takes longer.
_PROCESSOR = Path("/proc/cpuinfo")
_BFLOAT16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}
# A machine chooses one of the first two; every machine computes with the first.
_POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


@functools.cache
def device_strategy():
    """The distribution strategy for the devices of this process.

    MultiWorkerMirroredStrategy where TF_CONFIG names several workers: it has to
    be created before TensorFlow does anything else, as `run_recipe` sees to.
    MirroredStrategy where there are several GPUs, else the one device.

    Returns:
        A `tf.distribute.Strategy`; make and compile the model in its scope.
    """
    grow_gpu_memory()
    if num_machines() > 1:
        return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def has_gpu():
    """Whether TensorFlow computes on a GPU here."""
    return bool(tf.config.list_logical_devices("GPU"))


def grow_gpu_memory():
    """Has TensorFlow take memory of the GPUs as it needs it, not all of it.

    So a server starts beside a training. Nothing changes where the environment
    decides (TF_FORCE_GPU_ALLOW_GROWTH), and where TensorFlow has already
    started or the program has divided the memory itself.
    """
    if "TF_FORCE_GPU_ALLOW_GROWTH" in os.environ:
        return
    with contextlib.suppress(RuntimeError, ValueError):
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)


def dtype_policy(kept=None):
    """The dtype policy that `--dtype auto` stands for.

    mixed_bfloat16 where all devices compute with bfloat16: GPUs of compute
    capability 8.0 and above, or, without a GPU, a processor with instructions
    for it. Else float32, which is faster there. In a cluster one policy is
    chosen for all machines, which have to ask for it at the same time.

    Args:
        kept: str or None, the policy of the run that resumes, where this
            machine knows it. All machines then keep it.

    Returns:
        str.
    """
    if kept is not None and kept not in _POLICIES:
        return kept  # of a recipe of one's own
    known = len(_POLICIES)  # above all that a machine may choose
    own = int(_has_bfloat16()) if kept is None else known
    own += 0 if kept is None else _POLICIES.index(kept)
    answers = on_all_machines(own)
    agreed = max(answers) if max(answers) >= known else min(answers)
    return _POLICIES[int(agreed) % known]


def _has_bfloat16():
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return _processor_has_bfloat16()
    capabilities = (
        tf.config.experimental.get_device_details(gpu).get("compute_capability")
        for gpu in gpus
    )
    return all(
        capability is not None and capability >= _COMPUTES_WITH_BFLOAT16
        for capability in capabilities
    )


def _processor_has_bfloat16():
    # Only the kernels of oneDNN have such instructions, on Linux.
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return False
    if platform.system() != "Linux":
        return False
    try:
        text = _PROCESSOR.read_text("utf-8", errors="replace")
    except OSError:
        return False
    features = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    return bool(features and _BFLOAT16_INSTRUCTIONS & set(features[1].split()))


def num_machines():
    """The number of machines in the cluster; 1 where there is none."""
    cluster = _configuration().get("cluster", {})
    named = sum(len(cluster.get(kind, ())) for kind in ("chief", "worker"))
    return max(named, 1)


def is_chief():
    """Whether this process is the one that writes files.

    Of the workers in TF_CONFIG that is the chief, or the first where there is
    none; and any process without a cluster.
    """
    if num_machines() < 2:
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
    if num_machines() < 2:
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
