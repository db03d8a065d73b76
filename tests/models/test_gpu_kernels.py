"""Which tensors of a training step a GPU would fetch from the CPU's memory.

TensorFlow for GPUs lists its kernels on a machine without one too, and which
of their arguments are in the memory of the host: int32 mostly, for shapes.
"""

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels
from tensorflow.python.framework.function_def_to_graph import (
    function_def_to_graph,
)

from kseq import layers, models
from tests.slow import others_slow

BATCH, TIME, VOCAB = 3, 70, 90
IDS = np.random.default_rng(1).integers(4, VOCAB, (BATCH, TIME), "int32")
WEIGHTS = np.ones((BATCH, TIME), "float32")
PAIRS = {"source_ids": IDS, "target_ids": IDS}
# Ids come from the host, and what is made of each of them may stay there.
LARGEST = 2 * IDS.size
GPU = ("GPU", "DEFAULT")

RATES = {"dropout": 0.1}
RECURRENT = {"embedding_dim": 8, "units": 8, **RATES}
TRANSFORMER = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2, **RATES}
DOCUMENTS = {"source_ids": IDS.reshape(BATCH, 7, 10)}
CLASSES = np.array([0, 1, 1], "int32")
ONES = np.ones(BATCH, "float32")

# (model, inputs, labels, weights)
STEPS = {
    "transformer": lambda: (
        models.Transformer(
            *(VOCAB, VOCAB),
            num_encoder_layers=1,
            num_decoder_layers=1,
            attention_dropout=0.1,
            **TRANSFORMER,
        ),
        *(PAIRS, IDS, WEIGHTS),
    ),
    "lstm": lambda: (
        models.LSTMSeq2Seq(
            *(VOCAB, VOCAB),
            attention=layers.LuongAttention("general", name="attention"),
            input_feeding=True,
            **RECURRENT,
        ),
        *(PAIRS, IDS, WEIGHTS),
    ),
    "retrieval": lambda: (
        models.DualEncoder(VOCAB, dim=8, **RECURRENT),
        *({"source_ids": IDS, "target_ids": IDS}, None, WEIGHTS),
    ),
    "language model": lambda: (
        models.TransformerLM(VOCAB, num_layers=1, window=9, **TRANSFORMER),
        *({"target_ids": IDS}, IDS, WEIGHTS),
    ),
    "documents": lambda: (
        models.HierarchicalAttention(
            *(VOCAB, 2),
            attention_units=8,
            piece_dropout=0.1,
            sentence_dropout=0.1,
            **RECURRENT,
        ),
        *(DOCUMENTS, CLASSES, ONES),
    ),
}


def graphs(function):
    """The graph of a traced function, and those of its loops and branches."""
    yield function.graph
    for definition in function.graph.as_graph_def().library.function:
        yield function_def_to_graph(definition)


@functools.cache
def gpu_kernels(operation_type):
    """What the registry says of kernels that a GPU runs, the first ones first.

    Without those of the CPU, which most operations have many of.
    """
    registered = kernels.get_registered_kernels_for_op(operation_type).kernel
    found = [each for each in registered if each.device_type in GPU]
    return sorted(found, key=lambda k: (GPU.index(k.device_type), -k.priority))


def gpu_kernel(operation):
    """The description of the kernel that a GPU would run, or None."""
    for kernel in gpu_kernels(operation.type):
        if all(fits(operation, limit) for limit in kernel.constraint):
            return kernel
    return None


def fits(operation, limit):
    types = operation.get_attr(limit.name)
    types = types if isinstance(types, list) else [types]
    allowed = limit.allowed_values.list.type
    return all(getattr(each, "_type_enum", each) in allowed for each in types)


def arguments(operation, described, tensors):
    """(name, tensor) of the inputs or of the outputs of an operation."""
    tensors = iter(tensors)
    for argument in described:
        count = 1
        if argument.number_attr:
            count = operation.get_attr(argument.number_attr)
        elif argument.type_list_attr:
            count = len(operation.get_attr(argument.type_list_attr))
        for _ in range(count):
            yield argument.name, next(tensors)


def large_on_the_host(operation):
    """The names of its large arguments that are in the memory of the host."""
    if not any(map(is_large, (*operation.inputs, *operation.outputs))):
        return []
    kernel = gpu_kernel(operation)
    definition = operation.op_def
    pairs = [
        *arguments(operation, definition.input_arg, operation.inputs),
        *arguments(operation, definition.output_arg, operation.outputs),
    ]
    return [
        f"{name} {tensor.shape}"
        for name, tensor in pairs
        if kernel is None or name in kernel.host_memory_arg
        if is_large(tensor)
    ]


def is_large(tensor):
    """Dimensions that are not known, in a loop, count as 1."""
    shape = () if tensor.shape.rank is None else tensor.shape
    return math.prod(dim or 1 for dim in shape) > LARGEST


def traced_step(name):
    model, *data = STEPS[name]()
    model.compile(keras.optimizers.SGD(momentum=0.9), clip_norm=1.0)
    step = tf.function(model.train_step, autograph=False)
    return step.get_concrete_function(keras.tree.map_structure(tensor_of, data))


def tensor_of(value):
    return None if value is None else tf.constant(value)


@pytest.mark.parametrize("name", others_slow(STEPS, ["transformer", "lstm"]))
def test_no_large_tensor_of_a_step_is_in_the_memory_of_the_host(name):
    if not kernels.get_registered_kernels_for_op("CudnnRNNV3").kernel:
        pytest.skip("this TensorFlow has no kernels for GPUs")
    found = [
        f"{operation.type} of {large}"
        for graph in graphs(traced_step(name))
        for operation in graph.get_operations()
        if operation.type != "Placeholder"
        if (large := large_on_the_host(operation))
    ]
    assert not found
