"""The operations of the installed TensorFlow, with tensorflow_text's."""

import functools
import re

import tensorflow_text  # noqa: F401, it registers its own
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import kernels

from kseq.serving.safe_graph import ALLOWED_OPS

# Names of inputs and attributes that hold a path, an address or a program.
_REACHES_OUT = re.compile(
    "file|path|logdir|shard_dir|directory|prefix|pattern|address|server|"
    "memory_region|descriptor_source|vocab|url|^target$|target_workers|"
    "target_name|^token$|module|^key$|program_key|_device$"
)


@functools.cache
def registered_ops():
    """dict, name -> `OpDef`."""
    found = op_def_pb2.OpList.FromString(
        pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    )
    return {op.name: op for op in found.op}


@functools.cache
def ops_with_a_kernel():
    """The names of those that run on a CPU, sorted."""
    found = kernels.get_all_registered_kernels().kernel
    return sorted({k.op for k in found if k.device_type == "CPU"})


def arguments_that_reach_out(op):
    """Names of the inputs and attributes that may hold a path or address."""
    strings = [a.name for a in op.attr if a.type in ("string", "list(string)")]
    inputs = [
        each.name
        for each in op.input_arg
        if each.type == 7 or each.type_attr or each.type_list_attr  # a string
    ]
    return [name for name in strings + inputs if _REACHES_OUT.search(name)]


def ops_that_reach_out():
    """The names of those that have such arguments, and are not allowed."""
    return sorted(
        name
        for name, op in registered_ops().items()
        if arguments_that_reach_out(op) and name not in ALLOWED_OPS
    )
