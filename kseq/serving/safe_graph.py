"""Whether an untrusted SavedModel may be loaded."""

import hashlib
import itertools
import math
import os
import re
from collections.abc import Collection

import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from kseq.serving.allowed_ops import ALLOWED_OPS
from kseq.terminal import escaped_line
from kseq.user_error import ArgumentError, UserError

# The saver of every SavedModel has them: what else calls them could read or
# overwrite any file.
_OF_THE_SAVER = {"SaveV2", "RestoreV2", "MergeV2Checkpoints"}
# What TensorFlow creates Python objects of, and has no code of its own.
_KINDS = {
    *("user_object", "variable", "function", "bare_concrete_function"),
    *("resource", "constant", "captured_tensor"),
}
_IDENTIFIERS = {
    *("_generic_user_object", "signature_map", "trackable_list_wrapper"),
    *("trackable_dict_wrapper", "trackable_tuple_wrapper"),
}
_OF_THIS_MACHINE = re.compile(
    r"(/job:localhost)?(/replica:0)?(/task:0)?(/(device:)?\w+:(\d+|\*))?"
)
# Attributes that count outputs, for each of which loading makes an object.
_COUNTS = re.compile("N|num.*|.*ragged_rank", re.IGNORECASE)
_MOST_OUTPUTS = 2**16
_MOST_REPEATED = 2**26  # bytes of constants that are one value, repeated
_NAMES_SHOWN = 8
_DEEPEST_SIZES = 8  # nodes that compute the sizes of a split
_own: set[bytes] = set()  # digests


def trust(serialized: bytes) -> None:
    """Lets this process open a graph that it has written itself.

    A model of the user's own may have any operations.

    Args:
        serialized: bytes, of saved_model.pb.
    """
    _own.add(_digest(serialized))


def is_own(serialized: bytes) -> bool:
    """Whether this process has written a saved_model.pb."""
    return _digest(serialized) in _own


def _digest(serialized):
    return hashlib.sha256(serialized).digest()


def other_ops(
    meta_graph: MetaGraphDef, allow_ops: Collection[str] = ()
) -> list[str]:
    """The operations that no export of kseq has, a sorted list.

    Args:
        meta_graph: `MetaGraphDef`.
        allow_ops: names of others that are allowed.
    """
    return sorted(op_names(meta_graph) - ALLOWED_OPS - set(allow_ops))


def op_names(meta_graph: MetaGraphDef) -> set[str]:
    """The names of all operations of a graph, a set."""
    return {node.op for node in _all_nodes(meta_graph)}


def check_graph(
    path: str | os.PathLike,
    meta_graph: MetaGraphDef,
    allow_ops: Collection[str] = (),
) -> None:
    """Refuses a graph that could do what no export of kseq does.

    Each operation has to be one that exports have, also where it is never
    called. Operations that read and write the weights have to be in the
    functions of the saver, which nothing else may call.

    Args:
        path: of the export, for messages.
        meta_graph: `MetaGraphDef`.
        allow_ops: names of operations that are allowed, whatever they do.

    Raises:
        UserError: names what it is that is not allowed.
    """
    if isinstance(allow_ops, str):
        raise ArgumentError(
            f"allow_ops must be a list of names. Received: {allow_ops!r}"
        )
    if found := other_ops(meta_graph, allow_ops):
        names = [escaped_line(name)[:80] for name in found[:_NAMES_SHOWN]]
        more = len(found) - len(names)
        raise UserError(
            f"{path} has operations that no export of kseq has: "
            f"{', '.join(names)}{f' and {more} more' if more else ''}. They "
            "could read and write files and run programs, so it is not loaded. "
            "If a constraint or a layer of your own needs them, and you trust "
            f"the export, allow each of them, as --allow-op {names[0]}; in "
            f"Python, allow_ops=[{names[0]!r}]."
        )
    for reason in itertools.chain(
        _wrong_objects(meta_graph),
        _wrong_nodes(meta_graph),
        _aborting_nodes(meta_graph, allow_ops),
        _wrong_calls(meta_graph, _OF_THE_SAVER - set(allow_ops)),
    ):
        raise UserError(
            f"{path} is not as kseq writes an export, and is not loaded: "
            f"{escaped_line(reason)}."
        )


def _graphs(meta_graph):
    graph = meta_graph.graph_def
    return [graph.node, *(f.node_def for f in graph.library.function)]


def _all_nodes(meta_graph):
    return itertools.chain.from_iterable(_graphs(meta_graph))


def _wrong_objects(meta_graph):
    """What is wrong with the Python objects that loading makes."""
    if not meta_graph.HasField("object_graph_def"):
        yield "it has no objects, as SavedModels of TensorFlow 1"
    if meta_graph.asset_file_def:
        yield f"it has a file, {meta_graph.asset_file_def[0].filename:.80}"
    for node in meta_graph.object_graph_def.nodes:
        kind = node.WhichOneof("kind") or "user_object"
        if kind not in _KINDS:
            yield f"it has an object of the kind {kind}"
        identifier = node.user_object.identifier
        if kind == "user_object" and identifier not in _IDENTIFIERS:
            yield f"it has an object of the kind {identifier:.80}"
        if node.registered_name or node.registered_saver:
            name = node.registered_name or node.registered_saver
            yield f"it has an object of a registered class, {name:.80}"
        if node.saveable_objects or node.slot_variables:
            yield "it has objects that are restored by functions"
        devices = (node.variable.device, node.resource.device)
        for device in filter(None, devices):
            if not _OF_THIS_MACHINE.fullmatch(device):
                yield f"it has an object of the device {device:.80}"
        for child in (*node.children, *node.dependencies):
            if child.local_name.startswith("__"):
                yield f"it sets the attribute {child.local_name:.80}"
            if not 0 <= child.node_id < len(meta_graph.object_graph_def.nodes):
                yield "its objects refer to one that is missing"


def _wrong_nodes(meta_graph):
    """What is wrong with operations that are all allowed."""
    repeated = 0
    for node in _all_nodes(meta_graph):
        if not _OF_THIS_MACHINE.fullmatch(node.device):
            yield f"{node.name:.80} is to run on {node.device:.80}"
        for name, value in node.attr.items():
            if value.i > _MOST_OUTPUTS and _COUNTS.fullmatch(name):
                yield f"{node.name:.80} has {value.i} outputs"
            for tensor in (value.tensor, *value.list.tensor):
                repeated += _repeated(tensor)
        # TensorFlow reads constants by this type, and aborts if they have
        # another.
        if node.op == "Const" and (
            node.attr["dtype"].type != node.attr["value"].tensor.dtype
        ):
            yield f"{node.name:.80} has a value of another type"
    if repeated > _MOST_REPEATED:
        yield f"its constants would take {repeated / 2**20:.0f} MiB"


def _aborting_nodes(meta_graph, allow_ops):
    """Nodes at which TensorFlow would abort, instead of refusing them.

    It infers shapes when it imports a graph, and for two of the operations
    that kseq writes it checks the attributes and sizes by assertions of C++.
    """
    for nodes in _graphs(meta_graph):
        ranks = None
        for node in nodes:
            if node.op in allow_ops:
                continue
            if node.op == "GatherV2":
                batch_dims = node.attr["batch_dims"].i
                if batch_dims not in (0, 1):
                    yield f"{node.name:.80} has {batch_dims} batch dimensions"
            elif node.op == "SplitV":
                ranks = ranks or _Ranks(nodes)
                if len(node.input) < 2 or ranks.of(node.input[1]) != 1:
                    yield (
                        f"{node.name:.80} may split by what is not a list of "
                        "sizes (--allow-op SplitV trusts it)"
                    )


class _Ranks:
    """Ranks of what small operations compute from constants and shapes.

    Args:
        nodes: list of the `NodeDef`s of one graph or function.
    """

    def __init__(self, nodes):
        self._nodes = {node.name: node for node in nodes}
        self._known = {}

    def of(self, tensor, depth=0):
        """The rank of a tensor, or None if it is not certain.

        Args:
            tensor: its name, as inputs have it.
            depth: how many nodes are between it and the one that was asked
                for.
        """
        name = _node_name(tensor)
        if name not in self._nodes or depth > _DEEPEST_SIZES:
            return None
        if name not in self._known:
            self._known[name] = None  # while it is asked for, in a cycle
            node = self._nodes[name]
            inputs = [key for key in node.input if not key.startswith("^")]
            ranks = [self.of(key, depth + 1) for key in inputs]
            self._known[name] = self._of(node, inputs, ranks)
        return self._known[name]

    def _of(self, node, inputs, ranks):
        match node.op:
            case "Const":
                return len(node.attr["value"].tensor.tensor_shape.dim)
            case "Range" | "Shape":
                return 1
            case "StridedSlice" if ranks[1:] == [1, 1, 1]:
                return self._of_slice(node, inputs, ranks[0])
            case _ if not ranks or None in ranks:
                return None
            case "AddV2" | "Sub" | "Mul" | "Identity":
                return max(ranks)
            case "Pack" if len(set(ranks)) == 1:
                return ranks[0] + 1
            case "ConcatV2" if len(set(ranks[:-1])) == 1:
                return ranks[0]
        return None

    def _of_slice(self, node, inputs, rank):
        begin = self._nodes[_node_name(inputs[1])]
        others = ("ellipsis_mask", "new_axis_mask")
        if rank is None or begin.op != "Const":
            return None
        if any(node.attr[key].i for key in others):
            return None
        axes = begin.attr["value"].tensor.tensor_shape.dim[0].size
        removed = node.attr["shrink_axis_mask"].i & ((1 << min(axes, 31)) - 1)
        return rank - removed.bit_count()


def _repeated(tensor):
    """Bytes that a constant takes, and that are not in the file."""
    dims = [dim.size for dim in tensor.tensor_shape.dim]
    if not dims or any(size < 0 for size in dims):
        return 0
    try:
        size = tf.dtypes.as_dtype(tensor.dtype).size or 1
    except TypeError:
        size = 1
    return max(0, math.prod(dims) * size - tensor.ByteSize())


def _wrong_calls(meta_graph, of_the_saver):
    """What calls the functions of the saver, that is not the saver."""
    library = meta_graph.graph_def.library
    savers = {
        function.signature.name
        for function in library.function
        if any(node.op in of_the_saver for node in function.node_def)
    }
    for function in library.function:
        name = function.signature.name
        if name in savers and "api_implements" in function.attr:
            yield f"{name:.80} can take the place of another function"
    for caller, name in _calls_of_objects(meta_graph):
        if name in savers:
            yield f"{caller} can call {name:.80}"

    def calls_saver(node):
        return node.op in savers or savers.intersection(_functions(node))

    for function in library.function:
        for node in function.node_def:
            if calls_saver(node):
                yield f"{node.name:.80} calls a function of the saver"

    definition = meta_graph.saver_def
    of_saver = {
        _node_name(definition.save_tensor_name),
        _node_name(definition.restore_op_name),
    }
    used = {
        _node_name(info.name)
        for signature in meta_graph.signature_def.values()
        for info in (*signature.inputs.values(), *signature.outputs.values())
    }
    for collection in meta_graph.collection_def.values():
        used.update(map(_node_name, collection.node_list.value))
    for node in meta_graph.graph_def.node:
        used.update(map(_node_name, node.input))
        if node.op in of_the_saver or (
            calls_saver(node) and node.name not in of_saver
        ):
            yield f"{node.name:.80} calls a function of the saver"
    for node in meta_graph.graph_def.node:
        if node.name in of_saver & used and calls_saver(node):
            yield f"{node.name:.80} calls a function of the saver"


def _calls_of_objects(meta_graph):
    """Pairs of what can call a function, in words, and its name."""
    objects = meta_graph.object_graph_def
    names = [*objects.concrete_functions]
    for node in objects.nodes:
        names += node.function.concrete_functions
        names.append(node.bare_concrete_function.concrete_function_name)
        names.append(node.captured_tensor.concrete_function)
    library = meta_graph.graph_def.library
    gradients = (*library.gradient, *library.registered_gradients)
    return [
        *(("an object", name) for name in names),
        *(("a gradient", each.gradient_func) for each in gradients),
    ]


def _functions(node):
    """The functions that the attributes of a node name, a list."""
    names = []
    values = list(node.attr.values())
    while values:
        value = values.pop()
        for function in (value.func, *value.list.func):
            names.append(function.name)
            values += function.attr.values()
    return names


def _node_name(tensor):
    return tensor.removeprefix("^").partition(":")[0]
