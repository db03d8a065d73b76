"""Exports that are broken or hostile, drawn at random from a whole one."""

import random
import shutil

from google.protobuf.descriptor import FieldDescriptor
from tensorflow.core.protobuf import saved_model_pb2

from kseq.serving.safe_graph import ALLOWED_OPS
from tests.serving.registered_ops import ops_with_a_kernel

_NUMBERS = [0, 1, -1, 7, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)]
_TEXTS = ["", "x", "../" * 9, "\n\x1b", "é", "a" * 5000, "__class__", "While"]
_MESSAGE = FieldDescriptor.TYPE_MESSAGE


def mutated(whole, path, seed):
    """Writes a copy of the export `whole` with one change, or a few.

    Args:
        whole: `pathlib.Path` of a version.
        path: `pathlib.Path` that is made.
        seed: int, which determines the change.

    Returns:
        str, the kind of change.
    """
    draw = random.Random(seed)
    shutil.copytree(whole, path)
    change = draw.choice(
        [_bytes_changed, *[_fields_changed] * 3, _restructured]
    )
    file = path / "saved_model.pb"
    if change is _bytes_changed:
        files = [file] * 2 + sorted(path.glob("variables/*"))
        file = draw.choice([*files, path / "assets.extra" / "kseq.json"])
        file.write_bytes(_bytes_changed(draw, file.read_bytes()))
        return f"bytes of {file.name}"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    kind = change(draw, saved)
    file.write_bytes(saved.SerializeToString())
    return kind


def _bytes_changed(draw, content):
    content = bytearray(content)
    start = draw.randrange(len(content) + 1)
    end = min(len(content), start + draw.choice([1, 9, 1000]))
    match draw.randrange(5):
        case 0:
            del content[start:]
        case 1:
            del content[start:end]
        case 2:
            content[start:start] = content[start:end] * draw.choice([1, 50])
        case 3:
            content[start:end] = draw.randbytes(end - start)
        case 4:
            for _ in range(draw.choice([1, 8])):
                place = draw.randrange(len(content))
                content[place] ^= 1 << draw.randrange(8)
    return bytes(content)


# Fields of the message.


def _fields_changed(draw, saved):
    graph = saved.meta_graphs[0]
    roots = [graph, graph.graph_def, graph.object_graph_def]
    roots += [draw.choice(graph.graph_def.library.function) for _ in range(4)]
    roots += [*graph.signature_def.values(), graph.saver_def]
    for _ in range(draw.choice([1, 1, 1, 5])):
        message = draw.choice(roots)
        while (inner := _messages_in(message)) and draw.random() < 0.8:
            message = draw.choice(inner)
        fields = message.ListFields()
        if fields:
            field, value = draw.choice(fields)
            _change(draw, message, field, value)
    return "fields"


def _messages_in(message):
    found = []
    for field, value in message.ListFields():
        if field.type != _MESSAGE:
            continue
        if _is_map(field):
            if _value_field(field).type == _MESSAGE:
                found += value.values()
        elif field.is_repeated:
            found += value
        else:
            found.append(value)
    return found


def _is_map(field):
    return field.type == _MESSAGE and field.message_type.GetOptions().map_entry


def _value_field(field):
    return field.message_type.fields_by_name["value"]


def _change(draw, message, field, value):
    if draw.random() < 0.2:
        message.ClearField(field.name)
    elif _is_map(field):
        key = draw.choice(list(value))
        if draw.random() < 0.5 or _value_field(field).type != _MESSAGE:
            del value[key]
        else:
            value[key].CopyFrom(value[draw.choice(list(value))])
    elif field.is_repeated:
        _change_list(draw, field, value)
    elif field.type == _MESSAGE:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(draw, field))


def _change_list(draw, field, value):
    match draw.randrange(3):
        case 0:
            del value[draw.randrange(len(value))]
        case 1:
            value.extend(list(value) * draw.choice([1, 20]))
        case 2 if field.type != _MESSAGE:
            value[draw.randrange(len(value))] = _scalar(draw, field)
        case _:
            value[draw.randrange(len(value))].CopyFrom(draw.choice(value))


def _scalar(draw, field):
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = draw.choice(_TEXTS)
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        return text.encode() if is_bytes else text
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return draw.random() < 0.5
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return draw.choice([0.0, float("nan"), float("inf"), -1e30])
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return draw.choice([0, 1, 7, 20, 21, 99])
    least = 0 if "U" in str(field.type) else -(2**31)
    bounds = {
        FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
        FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
        FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    }[kind]
    del least
    return max(bounds[0], min(bounds[1], draw.choice(_NUMBERS)))


# Changes that somebody may have thought of.


def _restructured(draw, saved):
    change = draw.choice(
        [
            *(_hostile_op, _other_op, _rewired, _other_kind, _large_constant),
            *(_nested, _calls_itself, _large_variable, _swapped_function),
        ]
    )
    change(draw, saved.meta_graphs[0])
    return change.__name__


def _any_nodes(draw, graph):
    functions = graph.graph_def.library.function
    return draw.choice([graph.graph_def.node, *(f.node_def for f in functions)])


def _hostile_op(draw, graph):
    others = [op for op in ops_with_a_kernel() if op not in ALLOWED_OPS]
    _any_nodes(draw, graph).add(name="added", op=draw.choice(others))


def _other_op(draw, graph):
    nodes = [n for f in graph.graph_def.library.function for n in f.node_def]
    draw.choice(nodes).op = draw.choice(sorted(ALLOWED_OPS))


def _rewired(draw, graph):
    objects = graph.object_graph_def.nodes
    for _ in range(3):
        children = draw.choice([n for n in objects if n.children]).children
        draw.choice(children).node_id = draw.randrange(len(objects))


def _other_kind(draw, graph):
    objects = graph.object_graph_def.nodes
    draw.choice(objects).CopyFrom(draw.choice(objects))
    node = draw.choice(objects)
    kind = draw.choice(["asset", "function", "resource", "constant"])
    getattr(node, kind).SetInParent()


def _large_constant(draw, graph):
    nodes = [n for f in graph.graph_def.library.function for n in f.node_def]
    tensors = [n.attr["value"].tensor for n in nodes if n.op == "Const"]
    tensor = draw.choice(tensors)
    for _ in range(draw.choice([1, 3])):
        tensor.tensor_shape.dim.add().size = draw.choice(_NUMBERS)


def _large_variable(draw, graph):
    variables = [
        node.variable
        for node in graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "variable"
    ]
    draw.choice(variables).shape.dim.add().size = draw.choice(_NUMBERS)


def _nested(draw, graph):
    value = draw.choice(graph.graph_def.library.function).attr["x"]
    for _ in range(draw.choice([20, 200])):
        value.func.name = "x"
        value = value.func.attr["x"]


def _calls_itself(draw, graph):
    function = draw.choice(graph.graph_def.library.function)
    node = function.node_def.add(name="itself", op="StatefulPartitionedCall")
    node.attr["f"].func.name = function.signature.name


def _swapped_function(draw, graph):
    one, other = draw.sample(list(graph.graph_def.library.function), 2)
    one.signature.name, other.signature.name = (
        other.signature.name,
        one.signature.name,
    )
