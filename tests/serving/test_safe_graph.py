"""An export that could do what no export of kseq does is not loaded."""

import shutil
import sys

import pytest
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.distribute.experimental.rpc.kernels import gen_rpc_ops

from kseq.loading import load_export
from kseq.serving import GeneratorPredictor
from kseq.serving.safe_graph import (
    _COUNTS,
    ALLOWED_OPS,
    check_graph,
    trust,
)
from kseq.user_error import ArgumentError, UserError
from tests.serving.registered_ops import (
    arguments_that_reach_out,
    ops_that_reach_out,
    ops_with_a_kernel,
    registered_ops,
)

SAVERS = ["SaveV2", "RestoreV2", "MergeV2Checkpoints"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A version of a small SavedModel with a variable."""
    path = tmp_path_factory.mktemp("small") / "1"
    save(path, lambda text: text)
    return path


def save(path, answer, initialize=None):
    """Saves signatures from text to text, and maybe what runs at load."""
    module = tf.Module()
    module.variable = tf.Variable([1.0, 2.0])

    def generate(text):
        zeros = tf.zeros_like(text, tf.float32) + module.variable[0]
        answers = {"text": answer(text), "score": zeros}
        return answers | {"truncated": tf.zeros_like(text, tf.bool)}

    spec = tf.TensorSpec((None,), tf.string, "text")
    module.generate = tf.function(generate, [spec], autograph=False)
    if initialize:
        module.resource = Resource(initialize)
    signatures = {"serving_default": module.generate}
    tf.saved_model.save(module, str(path), signatures=signatures)


class Resource(tf.saved_model.experimental.TrackableResource):
    def __init__(self, initialize):
        super().__init__()
        self._run = initialize
        self._resource_handle = tf.raw_ops.VarHandleOp(
            dtype=tf.float32, shape=(), shared_name="x"
        )

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(
            dtype=tf.float32, shape=(), shared_name="x"
        )

    def _initialize(self):
        self._run()


@pytest.fixture
def graph(whole):
    return read(whole)


def read(path):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((path / "saved_model.pb").read_bytes())
    return saved.meta_graphs[0]


@pytest.fixture
def refused(whole, tmp_path, monkeypatch):
    """Function of a changed graph: the one message of an export with it."""

    monkeypatch.setattr(tf.saved_model, "load", _not_called)
    path = shutil.copytree(whole, tmp_path / "1")

    def message_of(*graphs):
        saved = saved_model_pb2.SavedModel(meta_graphs=graphs)
        serialized = saved.SerializeToString()
        (path / "saved_model.pb").write_bytes(serialized)
        return refusal(path)

    return message_of


def _not_called(path):
    raise AssertionError(f"{path} was loaded")


def refusal(path):
    with pytest.raises(UserError) as caught:
        load_export(path)
    [line] = str(caught.value).splitlines()
    assert str(path) in line
    assert len(line) < 1500
    return line


def test_what_is_allowed_is_loaded(whole):
    predictor = load_export(whole)
    assert isinstance(predictor, GeneratorPredictor)
    assert predictor(["a", "b"]) == ["a", "b"]


# Operations.


def added(graph, place, op):
    """The nodes of a place with one more, of an operation."""
    library = graph.graph_def.library.function
    unused = library.add()
    unused.signature.name = "unused"
    [saver] = [f for f in library if "traced_save" in f.signature.name]
    [served] = [f for f in library if "signature_w" in f.signature.name]
    nodes = {
        "main": graph.graph_def.node,
        "signature": served.node_def,
        "saver": saver.node_def,
        "unused": unused.node_def,
    }[place]
    nodes.append(node_def_pb2.NodeDef(name="added", op=op))


@pytest.mark.parametrize("op", ops_that_reach_out())
def test_an_operation_with_a_path_or_an_address(op, graph, refused):
    """Each that the installed TensorFlow has, whatever it will add."""
    place = ("main", "signature", "saver", "unused")[sum(op.encode()) % 4]
    added(graph, place, op)
    message = refused(graph)
    assert f"no export of kseq has: {op}." in message
    assert f"--allow-op {op};" in message


def test_the_registry_has_what_was_attacked():
    """It names them as expected: none is left out of the test above."""
    assert set(ops_that_reach_out()) > {
        *("ImmutableConst", "Save", "SaveSlices", "Restore", "RestoreSlice"),
        *("RecordInput", "DumpTensor", "CalibrationStatisticsSaver"),
        *("RpcServer", "RpcClient", "FixedUnigramCandidateSampler"),
        *("DecodeProtoV2", "EncodeProto", "XlaCallModule", "RemoteCall"),
        *("PyFunc", "PyFuncStateless", "EagerPyFunc", "ReadFile", "WriteFile"),
        *("MatchingFiles", "TextLineDataset", "DebugIdentityV3", "Skipgram"),
        *("InitializeTableFromTextFileV2", "LoadAndRemapMatrix", "LMDBDataset"),
    }


def test_none_that_is_allowed_reaches_out():
    """But those of the saver; a regular expression is no file."""
    found = registered_ops()
    assert found.keys() >= ALLOWED_OPS
    reaching = {op for op in ALLOWED_OPS if arguments_that_reach_out(found[op])}
    assert reaching == {*SAVERS, "StaticRegexFullMatch", "StaticRegexReplace"}


def test_attributes_that_count_outputs_are_known():
    names = {
        output.number_attr
        for op in ALLOWED_OPS
        for output in registered_ops()[op].output_arg
    }
    assert names
    assert all(map(_COUNTS.fullmatch, names - {""}))


def test_every_operation_that_is_not_allowed(graph):
    others = [op for op in ops_with_a_kernel() if op not in ALLOWED_OPS]
    assert len(others) > 1000
    assert {"Abort", "RpcServerStart", "DeserializeIterator"} < set(others)
    graph.graph_def.Clear()  # to be quick
    nodes = graph.graph_def.node
    for op in others:
        nodes.append(node_def_pb2.NodeDef(name="added", op=op))
        with pytest.raises(UserError, match=rf"has: {op}\."):
            check_graph("x", graph)
        check_graph("x", graph, allow_ops=[op])
        nodes.pop()


def test_hostile_names_are_one_line(graph, refused):
    for name in ("a\nb" * 1000, "\x1b[31m", "", "\u2028"):
        graph.graph_def.node.append(node_def_pb2.NodeDef(name="x", op=name))
    assert "\x1b" not in refused(graph)


def test_operations_of_the_user(tmp_path, whole):
    path = tmp_path / "1"
    save(
        path,
        lambda text: (
            tf.strings.unicode_script(
                tf.strings.unicode_decode(text, "UTF-8").flat_values
            )[:1]
            + 0 * tf.strings.length(text)
        ),
    )
    message = refusal(path)
    assert "UnicodeScript" in message
    load_export(path, allow_ops=["UnicodeScript", *read_others(message)])
    with pytest.raises(ArgumentError, match="must be a list of names"):
        load_export(path, allow_ops="UnicodeScript")


def read_others(message):
    names = message.partition("no export of kseq has: ")[2].partition(".")[0]
    return names.split(", ")


def test_what_this_process_has_exported(tmp_path):
    """Any operations, in those bytes and no others."""
    save(tmp_path / "1", tf.strings.upper)
    assert "StringUpper" in refusal(tmp_path / "1")
    file = tmp_path / "1" / "saved_model.pb"
    trust(file.read_bytes())
    assert load_export(tmp_path)(["a"]) == ["A"]
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    added(saved.meta_graphs[0], "main", "ReadFile")
    file.write_bytes(saved.SerializeToString())
    assert "ReadFile, StringUpper" in refusal(tmp_path / "1")


# Attacks that did something, before they were refused.


def server_started():
    server = gen_rpc_ops.rpc_server(server_address="localhost:0")
    gen_rpc_ops.rpc_server_start(server)


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        (
            "ImmutableConst",
            lambda text: tf.raw_ops.ImmutableConst(
                dtype=tf.string, shape=[1], memory_region_name="/etc/passwd"
            ),
        ),
        (
            "Restore",
            lambda text: tf.raw_ops.Restore(
                file_pattern="/x", tensor_name="x", dt=tf.string
            ),
        ),
        (
            "RestoreV2",
            lambda text: tf.raw_ops.RestoreV2(
                prefix="/x",
                tensor_names=["x"],
                shape_and_slices=[""],
                dtypes=[tf.string],
            )[0],
        ),
        (
            "RecordInput",
            lambda text: tf.raw_ops.RecordInput(file_pattern="/etc/passwd"),
        ),
    ],
)
def test_a_signature_that_reads_a_file(tmp_path, op, answer, monkeypatch):
    save(tmp_path / "1", answer)
    monkeypatch.setattr(tf.saved_model, "load", _not_called)
    assert op in refusal(tmp_path / "1") or op in SAVERS


@pytest.mark.parametrize(
    "attack",
    [
        lambda path: tf.raw_ops.Save(
            filename=path, tensor_names=["x"], data=[tf.constant("true")]
        ),
        lambda path: tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=["x"],
            shape_and_slices=[""],
            tensors=[tf.constant("true")],
        ),
        lambda path: tf.raw_ops.MergeV2Checkpoints(
            checkpoint_prefixes=[path], destination_prefix=path
        ),
        lambda path: tf.raw_ops.WriteFile(filename=path, contents="true"),
        lambda path: tf.raw_ops.Abort(error_msg="x"),
        lambda path: server_started(),
    ],
    ids=["save", "save_v2", "merge", "write_file", "abort", "rpc_server"],
)
def test_what_runs_at_load(tmp_path, attack):
    """An attack within the initializer of a resource: nothing is done."""
    path = tmp_path / "written"
    save(tmp_path / "1", tf.identity, lambda: attack(str(path)) and None)
    refusal(tmp_path / "1")
    assert [file.name for file in tmp_path.iterdir()] == ["1"]


# The saver's own operations, elsewhere.


def called(how, name):
    """A node that calls a function."""
    node = node_def_pb2.NodeDef(name="added", op=how)
    attributes = {
        "PartitionedCall": ["f"],
        "StatefulPartitionedCall": ["f"],
        "While": ["cond", "body"],
        "StatelessWhile": ["body"],
        "If": ["then_branch"],
        "StatelessIf": ["else_branch"],
    }
    for attribute in attributes.get(how, []):
        node.attr[attribute].func.name = name
    if how == "Case":
        node.op = "If"
        node.attr["branches"].list.func.add().name = "other"
        node.attr["branches"].list.func.add().name = name
    if how == "nested":
        node.op = "StatefulPartitionedCall"
        node.attr["f"].func.name = "other"
        node.attr["f"].func.attr["g"].func.name = name
    return node


@pytest.mark.parametrize("place", ["main", "signature", "unused"])
@pytest.mark.parametrize(
    "how",
    [
        *("PartitionedCall", "StatefulPartitionedCall", "While", "nested"),
        *("StatelessWhile", "If", "StatelessIf", "Case"),
    ],
)
def test_the_saver_is_called(how, place, graph, refused):
    [name] = [
        function.signature.name
        for function in graph.graph_def.library.function
        if "traced_save" in function.signature.name
    ]
    added(graph, place, "NoOp")
    library = graph.graph_def.library.function
    lists = [graph.graph_def.node, *(f.node_def for f in library)]
    [nodes] = [nodes for nodes in lists if nodes and nodes[-1].name == "added"]
    nodes.pop()
    nodes.append(called(how, name))
    refused(graph)
    with pytest.raises(UserError, match="calls a function of the saver"):
        check_graph("x", graph, allow_ops=["PartitionedCall"])


@pytest.mark.parametrize("op", SAVERS)
@pytest.mark.parametrize("place", ["main", "signature"])
def test_an_operation_of_the_saver(op, place, graph, refused):
    added(graph, place, op)
    refused(graph)


def _the_saver(graph):
    library = graph.graph_def.library.function
    return next(f for f in library if "traced_save" in f.signature.name)


def _in_an_object(graph, name):
    node = graph.object_graph_def.nodes.add()
    node.bare_concrete_function.concrete_function_name = name


def _in_a_function(graph, name):
    node = graph.object_graph_def.nodes.add()
    node.function.concrete_functions.append(name)


def _as_a_gradient(graph, name):
    found = graph.graph_def.library.registered_gradients.add()
    found.gradient_func = name


def _in_place_of_another(graph, name):
    _the_saver(graph).attr["api_implements"].s = b"lstm"


def _as_an_output(graph, name):
    info = graph.signature_def["serving_default"].outputs["text"]
    info.name = graph.saver_def.save_tensor_name


def _before_another(graph, name):
    node = graph.saver_def.restore_op_name
    graph.graph_def.node.add(name="x", op="NoOp", input=[f"^{node}"])


def _at_the_start(graph, name):
    found = graph.collection_def["saved_model_main_op"].node_list
    found.value.append(graph.saver_def.restore_op_name)


@pytest.mark.parametrize(
    "change",
    [
        *(_in_an_object, _in_a_function, _as_a_gradient, _in_place_of_another),
        *(_as_an_output, _before_another, _at_the_start),
    ],
)
def test_the_saver_is_used(change, graph, refused):
    change(graph, _the_saver(graph).signature.name)
    message = refused(graph)
    assert "is not as kseq writes an export" in message


# What is loaded with the graph.


def _asset(graph):
    graph.asset_file_def.add().filename = "../../../etc/passwd"


def _object_of(**fields):
    def change(graph):
        graph.object_graph_def.nodes.add(**fields)

    return change


def _on(device):
    def change(graph):
        graph.graph_def.node[0].device = device

    return change


def _constant_of(*dims):
    def change(graph):
        node = graph.graph_def.node.add(name="added", op="Const")
        tensor = node.attr["value"].tensor
        tensor.dtype = node.attr["dtype"].type = tf.float32.as_datatype_enum
        tensor.float_val.append(1.0)
        for size in dims:
            tensor.tensor_shape.dim.add().size = size

    return change


def _outputs(graph):
    graph.graph_def.node.add(name="x", op="Unpack").attr["num"].i = 2**40


def _batch_dims(number):
    def change(graph):
        node = graph.graph_def.node.add(name="x", op="GatherV2")
        node.attr["batch_dims"].i = number

    return change


def _split_by(dims, how="Identity"):
    """Splits by constants of a shape, after an operation on two of them."""

    def change(graph):
        nodes = graph.graph_def.node
        for name, shape in (("size", dims), ("axis", [])):
            node = nodes.add(name=name, op="Const")
            tensor = node.attr["value"].tensor
            tensor.dtype = node.attr["dtype"].type = tf.int32.as_datatype_enum
            for size in shape:
                tensor.tensor_shape.dim.add().size = size
            tensor.int_val.append(1)
        inputs = {
            "Identity": ["size"],
            "cycle": ["sizes"],
            "Pack": ["size", "size"],
            "ConcatV2": ["size", "size", "axis"],
        }
        op = "Identity" if how == "cycle" else how
        nodes.add(name="sizes", op=op, input=inputs[how])
        nodes.add(name="x", op="SplitV", input=["size", "sizes", "axis"])

    return change


@pytest.mark.parametrize(
    ("dims", "how"), [([2], "Identity"), ([], "Pack"), ([1], "ConcatV2")]
)
def test_a_split_may_compute_its_sizes(dims, how, graph):
    _split_by(dims, how)(graph)
    check_graph("path", graph)


def _without_objects(graph):
    graph.ClearField("object_graph_def")


def _attribute(name):
    def change(graph):
        graph.object_graph_def.nodes[0].children.add(node_id=0, local_name=name)

    return change


def _missing_object(graph):
    graph.object_graph_def.nodes[0].children.add(node_id=99, local_name="x")


def _saveable(graph):
    saveable = graph.object_graph_def.nodes[0].saveable_objects["x"]
    saveable.restore_function = 1


def _large_variable(graph):
    for node in graph.object_graph_def.nodes:
        for dim in node.variable.shape.dim:
            dim.size = 10**12


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_outputs, "x has 1099511627776 outputs"),
        (_batch_dims(2), "x has 2 batch dimensions"),
        (_batch_dims(-1), "x has -1 batch dimensions"),
        (_split_by([]), "x may split by what is not a list of sizes"),
        (_split_by([2, 1]), "x may split by"),
        (_split_by([1], "Pack"), "x may split by"),
        (_split_by([2, 1], "ConcatV2"), "x may split by"),
        (_split_by([1], "cycle"), "x may split by"),
        (_without_objects, "no objects"),
        (_asset, "has a file, ../../../etc/passwd"),
        (_object_of(asset={"asset_file_def_index": 0}), "of the kind asset"),
        (_object_of(user_object={"identifier": "optimizer"}), "optimizer"),
        (
            _object_of(user_object={"identifier": "_tf_keras_layer"}),
            "_tf_keras_layer",
        ),
        (
            _object_of(
                registered_name="tf.StaticHashTable",
                user_object={"identifier": "_generic_user_object"},
            ),
            "a registered class, tf.StaticHashTable",
        ),
        (
            _object_of(
                registered_saver="x",
                user_object={"identifier": "_generic_user_object"},
            ),
            "a registered class, x",
        ),
        (
            _object_of(resource={"device": "/job:worker/task:1"}),
            "/job:worker/task:1",
        ),
        (_on("/job:worker/replica:0/task:3/device:CPU:0"), "/job:worker"),
        (_on("grpc://other:1"), "grpc://other:1"),
        (_constant_of(10**6, 10**6), "constants would take"),
        (_constant_of(2**62, 2**62), "constants would take"),
        (_attribute("__class__"), "__class__"),
        (_missing_object, "one that is missing"),
        (_saveable, "restored by functions"),
        (_large_variable, "its weights would take"),
    ],
)
def test_what_kseq_does_not_write(change, reason, graph, refused):
    change(graph)
    assert reason in refused(graph)


def test_several_graphs(graph, refused):
    assert "cannot be read" in refused(graph, graph)
    assert "cannot be read" in refused()


def test_other_files_are_not_read(whole, tmp_path):
    """TensorFlow would read the one, and warn of the other."""
    path = shutil.copytree(whole, tmp_path / "my model [1]")
    (path / "saved_model.pbtxt").write_text("nonsense")
    (path / "saved_model.cpb").write_text("nonsense")
    (path / "fingerprint.pb").write_text("nonsense")
    (path / "debug").mkdir()
    (path / "debug" / "saved_model_debug_info.pb").write_text("nonsense")
    assert load_export(path)(["a"]) == ["a"]
    (path / "saved_model.pb").unlink()
    with pytest.raises(UserError, match="is neither a run directory nor"):
        load_export(path)


def test_the_graph_that_was_checked_is_the_one_that_is_loaded(
    whole, tmp_path, monkeypatch
):
    path = shutil.copytree(whole, tmp_path / "1")

    def swap(*args):
        check_graph(*args)
        save(tmp_path / "other", lambda text: text + "!")
        other = tmp_path / "other" / "saved_model.pb"
        shutil.copy(other, path / "saved_model.pb")

    module = sys.modules["kseq.loading.load_export"]  # not the function
    monkeypatch.setattr(module, "check_graph", swap)
    assert load_export(path)(["a"]) == ["a"]
