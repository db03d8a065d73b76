"""All GPUs of the machine, and all machines of the cluster."""

import collections
import contextlib
import functools
import json
import os
import platform
import re
from pathlib import Path

import tensorflow as tf

from kseq.user_error import UserError

# NVIDIA GPUs compute with bfloat16 from Ampere on.
_COMPUTES_WITH_BFLOAT16 = (8, 0)
# Features of x86 and ARM processors in /proc/cpuinfo. Without them, TensorFlow
# converts to float32 and back, which takes longer.
_PROCESSOR = Path("/proc/cpuinfo")
_BFLOAT16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


@functools.cache
def device_strategy():
    """The distribution strategy for the devices of this process.

    MultiWorkerMirroredStrategy if TF_CONFIG names several workers; it has to be
    created before TensorFlow does anything else, which `run_recipe` ensures.
    MirroredStrategy if there are several GPUs, otherwise the default strategy.

    Returns:
        A `tf.distribute.Strategy`; make and compile the model in its scope.
    """
    grow_gpu_memory()
    if num_machines() > 1:
        return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def check_not_forked():
    """Raises UserError in a process forked from one that called this before.

    There, the first operation of TensorFlow waits forever for a thread that
    exists only in the other process.
    """
    if os.getpid() != _process():
        raise UserError(
            "This process was forked from one that had loaded a model, and "
            "TensorFlow does not work after a fork. Load the model in each "
            "process after the fork: gunicorn without --preload does so. Or "
            'start processes with multiprocessing.get_context("spawn").'
        )


@functools.cache
def _process():
    return os.getpid()


def has_gpu():
    """Whether TensorFlow computes on a GPU here."""
    return bool(tf.config.list_logical_devices("GPU"))


def grow_gpu_memory():
    """Makes TensorFlow allocate GPU memory as it is needed, not all at once.

    A server can then start on the same GPU during training. Nothing changes if
    the environment decides (TF_FORCE_GPU_ALLOW_GROWTH), if TensorFlow has
    already started, or if the program has partitioned the memory itself.
    """
    if "TF_FORCE_GPU_ALLOW_GROWTH" in os.environ:
        return
    with contextlib.suppress(RuntimeError, ValueError):
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)


def gpu_memory():
    """The most bytes that this process has had on a GPU; None without one.

    Of several GPUs, those of the one with the most. Tensors and the temporary
    memory of kernels count, but not the context of CUDA.
    """
    peaks = []
    for number in range(len(tf.config.list_logical_devices("GPU"))):
        with contextlib.suppress(ValueError):  # it has no statistics
            info = tf.config.experimental.get_memory_info(f"GPU:{number}")
            peaks.append(info["peak"])
    return max(peaks, default=None)


def is_out_of_memory(error: tf.errors.OpError) -> bool:
    """Whether an operation had too little memory, of the host or of a GPU.

    Where a library of the GPU has too little, that is an internal error.
    """
    message = error.message.lower().replace("_", " ")
    return (
        isinstance(error, tf.errors.ResourceExhaustedError)
        or "out of memory" in message
    )


def device_name():
    """The GPUs of this machine, such as "2 x NVIDIA H200", or its processor."""
    names = [
        tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    if not names:
        return _field_of_processor("model name") or platform.machine()
    return ", ".join(
        name if count == 1 else f"{count} x {name}"
        for name, count in collections.Counter(names).items()
    )


def dtype_policy():
    """The dtype policy that `--dtype auto` stands for.

    mixed_bfloat16 if all devices compute with bfloat16: GPUs of compute
    capability 8.0 and above, or, without a GPU, a processor with instructions
    for it. Otherwise float32, which is faster there. In a cluster one policy is
    chosen for all machines, which have to call this at the same time.
    """
    all_have_it = min(on_all_machines(int(_has_bfloat16())))
    return "mixed_bfloat16" if all_have_it else "float32"


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
    # Only the kernels of oneDNN use such instructions, on Linux.
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":
        return False
    if platform.system() != "Linux":
        return False
    features = _field_of_processor("flags|Features")
    return bool(_BFLOAT16_INSTRUCTIONS & set(features.split()))


def _field_of_processor(name):
    """What Linux says of the processor; "" if it does not."""
    try:
        text = _PROCESSOR.read_text("utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(rf"^(?:{name})\s*:(.*)", text, re.MULTILINE)
    return found[1].strip() if found else ""


def num_machines():
    """The number of machines in the cluster; 1 if there is none."""
    cluster = _configuration().get("cluster", {})
    named = sum(len(cluster.get(kind, ())) for kind in ("chief", "worker"))
    return max(named, 1)


def is_chief():
    """Whether this process is the one that writes files.

    Of the workers in TF_CONFIG this is the chief, or the first if there is
    none. Without a cluster it is any process.
    """
    if num_machines() < 2:
        return True
    task = _configuration()["task"]
    if "chief" in _configuration()["cluster"]:
        return task["type"] == "chief"
    return int(task["index"]) == 0


def on_all_machines(value):
    """Gathers a number from each machine of the cluster, the chief's first.

    All machines have to call this at the same time.

    Args:
        value: float, that of this machine.

    Returns:
        A list of float; only `value` if there is no cluster.
    """
    if num_machines() < 2:
        return [float(value)]
    return _gathered([value])[:, 0].tolist()


def from_chief(value):
    """Gives all machines of the cluster what the chief has.

    All machines have to call this at the same time; the others wait for the
    chief.

    Args:
        value: anything that JSON can hold; that of other machines is ignored.

    Returns:
        The value of the chief.
    """
    if num_machines() < 2:
        return value
    text = json.dumps(value).encode()
    size = int(on_all_machines(len(text))[0])
    chars = _gathered(list(text.ljust(size)[:size]))[0]
    return json.loads(bytes(map(int, chars)))


def _gathered(values):
    """The numbers of each replica, the chief's first: (R, N) float64."""
    gathered = _gather()(tf.constant(values, tf.float64))
    strategy = device_strategy()
    return strategy.experimental_local_results(gathered)[0].numpy()


@functools.cache
def _gather():
    strategy = device_strategy()

    def on_replica(values):
        context = tf.distribute.get_replica_context()
        places = tf.range(context.num_replicas_in_sync)
        is_own = places == context.replica_id_in_sync_group
        own = tf.where(is_own[:, None], values, 0)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

    return tf.function(
        lambda values: strategy.run(on_replica, (values,)),
        reduce_retracing=True,
    )


def _configuration():
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UserError(
            f"TF_CONFIG is not a JSON object. Received: {text!r:.80}"
        )
    return found
