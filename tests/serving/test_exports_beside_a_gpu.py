"""An export answers on every machine, also if it was made beside a GPU."""

import collections

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

import kseq
from kseq import serving
from kseq.loading.load_export import read_meta_graph
from kseq.serving.served_function import served_part
from tests.recipe_models import SERVED, inputs_of, make_served


def nodes_of(path):
    return nodes_in(read_meta_graph(path).graph_def)


def nodes_in(graph):
    functions = {part.signature.name for part in graph.library.function}
    parts = [graph.node, *(part.node_def for part in graph.library.function)]
    return [node for part in parts for node in part if node.op not in functions]


def has_cpu_kernel(node):
    return any(
        kernel.device_type in ("CPU", "DEFAULT")
        and all(
            node.attr[each.name].type in each.allowed_values.list.type
            for each in kernel.constraint
            if node.attr[each.name].type
        )
        for kernel in kernels.get_registered_kernels_for_op(node.op).kernel
    )


def devices_of(nodes):
    return {node.device for node in nodes}


# The test below has the graph of a part of an export in every run.
@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVED)
def test_the_same_operations_all_with_a_cpu_kernel(tmp_path, request, kind):
    here = nodes_of(serving.export(make_served(kind), tmp_path / "here"))
    request.getfixturevalue("reported_gpu")
    path = serving.export(make_served(kind), tmp_path / "there")
    nodes = nodes_of(path)
    assert not {node.op for node in nodes if not has_cpu_kernel(node)}
    assert count(nodes) == count(here)
    assert devices_of(nodes) == devices_of(here)
    assert kseq.load(path)(inputs_of(kind))


def count(nodes):
    return collections.Counter(node.op for node in nodes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVED)
def test_half_precision(tmp_path, reported_gpu, kind):
    served = make_served(kind, "mixed_bfloat16")
    nodes = nodes_of(serving.export(served, tmp_path))
    assert not {node.op for node in nodes if not has_cpu_kernel(node)}


def test_a_part_of_a_signature_that_is_called_alone(reported_gpu):
    """Its graph is the one that an export has."""
    model = make_served("retrieve_answers").model
    spec = {"source_ids": tf.TensorSpec((None, None), tf.int32)}
    traced = served_part(model.encode_source).get_concrete_function(spec)
    assert "CudnnRNNV3" not in {op.type for op in traced.graph.get_operations()}
    nodes = nodes_in(traced.graph.as_graph_def())
    assert not {node.op for node in nodes if not has_cpu_kernel(node)}
    of_device = tf.function(model.encode_source).get_concrete_function(spec)
    assert "CudnnRNNV3" in {op.type for op in of_device.graph.get_operations()}


def test_no_device_is_written_but_that_of_the_files(tmp_path):
    """The weights may be anywhere: the graph does not say so."""
    with tf.device("CPU:1"):
        served = make_served("learn_algorithms lstm")
    nodes = nodes_of(serving.export(served, tmp_path))
    assert devices_of(nodes) == {"", "/device:CPU:0", "/device:CPU:*"}
