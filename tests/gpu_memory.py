"""Where the tensors of a graph would be on a GPU.

TensorFlow for GPUs lists its kernels on a machine without one too, and which
of their arguments are in the memory of the host: int32 mostly, for shapes.
What one operation leaves in the memory of the GPU and another one reads from
that of the host is copied, and the host waits for it.
"""

import functools
import graphlib
from typing import NamedTuple

import keras
import tensorflow as tf
from tensorflow.python.framework import kernels
from tensorflow.python.framework.function_def_to_graph import (
    function_def_to_graph,
)

from tests.recipe_models import batch_of

HOST, GPU = "host", "GPU"
_DEVICES = ("GPU", "DEFAULT")
# Always in the memory of the host where they enter or leave a loop or a branch,
# as the kernels of Enter, Exit, Merge and Switch have it.
_OF_THE_HOST = (tf.int32, tf.string, tf.resource)
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_LOOPS = ("While", "StatelessWhile")
_BRANCHES = ("If", "StatelessIf")


class Copy(NamedTuple):
    """A tensor that is copied from one memory to the other.

    Attributes:
        to: str, `HOST` or `GPU`.
        reader: str, dtype, operation and argument that read it there first,
            such as "int32 Equal.x"; "LoopCond" for the condition of a loop,
            "Loop" and "Branch" for what enters or leaves one.
        tensor: the symbolic tensor.
        loops: int, how many loops the operation is in.
    """

    to: str
    reader: str
    tensor: tf.Tensor
    loops: int

    @property
    def is_data(self):
        """Whether its size depends on the batch; a shape's does not."""
        return None in (self.tensor.shape if self.tensor.shape.rank else ())


class GraphMemory:
    """What is copied when a traced function runs on a GPU.

    Args:
        function: a concrete function, whose inputs are on the host.

    Attributes:
        copies: list of `Copy`.
        without_kernel: list of pairs of the type of an operation that no GPU
            can run, and the number of loops that it is in.
        operations: list of pairs of an operation and the number of loops that
            it is in, with those of called functions.
    """

    def __init__(self, function):
        self.copies, self.operations, self.without_kernel = [], [], []
        self._library = {
            part.signature.name: part
            for part in function.graph.as_graph_def().library.function
        }
        self._graphs = {}
        with function.graph.as_default():  # of the functions that others call
            self._visit(function.graph, [HOST] * len(function.inputs), loops=0)

    def _visit(self, graph, memories, loops):
        """The memory of each tensor of a graph, by that of its inputs."""
        refs = [tensor.ref() for tensor in graph.inputs]
        where = dict(zip(refs, memories, strict=True))
        constants, copied = set(), set()
        # A loop of a gradient may have inputs that are made after it.
        order = graphlib.TopologicalSorter(
            {
                each: {x.op for x in each.inputs}
                for each in graph.get_operations()
            }
        )
        for operation in order.static_order():
            if operation.type == "Placeholder":
                continue
            self.operations.append((operation, loops))
            refs = [tensor.ref() for tensor in operation.outputs]
            if _is_constant(operation, constants):
                constants.update(refs)
                outputs = map(_at_border, operation.outputs)
            else:
                given = [where[tensor.ref()] for tensor in operation.inputs]
                outputs = self._run(operation, given, loops, copied)
            where.update(zip(refs, outputs, strict=True))
        return where

    def _run(self, operation, given, loops, copied):
        """The memories of the outputs of an operation."""
        inputs = operation.inputs
        note = functools.partial(self._note, copied, loops)
        if operation.type in (*_CALLS, *self._library):
            ends = self._call(operation, "f", given, loops)
            return [memory for _, memory in ends]
        if operation.type in _LOOPS:
            inside = list(map(_at_border, inputs))
            note("Loop", inputs, given, inside)
            loops += 1
            note = functools.partial(self._note, copied, loops)
            ends = self._call(operation, "cond", inside, loops)
            note("LoopCond", *zip(*ends, strict=True), [HOST])
            ends = self._call(operation, "body", inside, loops)
            note("Loop", *zip(*ends, strict=True), inside)
            return inside
        if operation.type in _BRANCHES:
            inside = [HOST, *map(_at_border, inputs[1:])]
            note("Branch", inputs, given, inside)
            for branch in ("then_branch", "else_branch"):
                ends = self._call(operation, branch, inside[1:], loops)
                outside = [_at_border(tensor) for tensor, _ in ends]
                if ends:
                    note("Branch", *zip(*ends, strict=True), outside)
            return outside
        if (
            operation.type == "Cast"
            and inputs[0].dtype == operation.outputs[0].dtype
        ):
            return given  # TensorFlow removes it

        kernel = _gpu_kernel(operation)
        if kernel is None:
            self.without_kernel.append((operation.type, loops))
        definition = operation.op_def
        names = _names(operation, definition.input_arg)
        wanted = [_memory(kernel, name) for name in names]
        readers = [f"{operation.type}.{name}" for name in names]
        note(readers, inputs, given, wanted)
        names = _names(operation, definition.output_arg)
        return [_memory(kernel, name) for name in names]

    def _call(self, operation, attribute, memories, loops):
        """Pairs of an output of a function, and its memory."""
        name = operation.type
        if name not in self._library:
            name = operation.get_attr(attribute).name
        if name not in self._graphs:
            self._graphs[name] = function_def_to_graph(self._library[name])
        graph = self._graphs[name]
        where = self._visit(graph, memories, loops)
        return [(tensor, where[tensor.ref()]) for tensor in graph.outputs]

    def _note(self, copied, loops, readers, tensors, before, after):
        """Adds what has to be copied, and has not been for another reader."""
        if isinstance(readers, str):
            readers = [readers] * len(tensors)
        for reader, tensor, old, new in zip(
            readers, tensors, before, after, strict=True
        ):
            if old != new and (tensor.ref(), new) not in copied:
                copied.add((tensor.ref(), new))
                reader = f"{tensor.dtype.name} {reader}"
                self.copies.append(Copy(new, reader, tensor, loops))


def has_gpu_kernels():
    """Whether this TensorFlow has kernels for GPUs."""
    return bool(kernels.get_registered_kernels_for_op("CudnnRNNV3").kernel)


def training_step(kind, served):
    """The step of a model of `recipe_models`, traced for batches of any size.

    Args:
        kind: str, see `tests.recipe_models.make_served`.
        served: what this returned.
    """
    model = served.model
    model.compile(keras.optimizers.Adam(), clip_norm=1.0)
    specs = keras.tree.map_structure(_of_any_size, batch_of(kind, served))
    step = tf.function(model.train_step, autograph=False)
    return step.get_concrete_function(specs)


def _of_any_size(tensor):
    tensor = tf.convert_to_tensor(tensor)
    features = tensor.shape[2:] if tensor.dtype.is_floating else ()
    sizes = [None] * (tensor.shape.rank - len(features))
    return tf.TensorSpec((*sizes, *features), tensor.dtype)


def _is_constant(operation, constants):
    """Whether TensorFlow computes it once, before the graph runs."""
    if operation.type == "Const":
        return True
    return (
        bool(operation.inputs)
        and all(tensor.ref() in constants for tensor in operation.inputs)
        and not operation.op_def.is_stateful
        and operation.type not in (*_CALLS, *_LOOPS, *_BRANCHES)
    )


def _at_border(tensor):
    return HOST if tensor.dtype in _OF_THE_HOST else GPU


def _memory(kernel, name):
    return HOST if kernel is None or name in kernel.host_memory_arg else GPU


@functools.cache
def _gpu_kernels(operation_type):
    """What the registry says of kernels that a GPU runs, the first ones first.

    Without those of the CPU, which most operations have many of.
    """
    registered = kernels.get_registered_kernels_for_op(operation_type).kernel
    found = [each for each in registered if each.device_type in _DEVICES]
    return sorted(
        found, key=lambda k: (_DEVICES.index(k.device_type), -k.priority)
    )


def _gpu_kernel(operation):
    """The description of the kernel that a GPU would run, or None."""
    for kernel in _gpu_kernels(operation.type):
        if all(_fits(operation, limit) for limit in kernel.constraint):
            return kernel
    return None


def _fits(operation, limit):
    types = operation.get_attr(limit.name)
    types = types if isinstance(types, list) else [types]
    allowed = limit.allowed_values.list.type
    return all(getattr(each, "_type_enum", each) in allowed for each in types)


def _names(operation, described):
    """The names of its inputs or of its outputs, one for each tensor."""
    names = []
    for argument in described:
        count = 1
        if argument.number_attr:
            count = operation.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            count = len(operation.get_attr(argument.type_list_attr))
        names += [argument.name] * count
    return names
