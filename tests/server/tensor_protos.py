"""TensorProtos whose values are in the field of their type, or in bytes."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

FIELDS = {
    tf.string: "string_val",
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.float16: "half_val",
    tf.int32: "int_val",
    tf.uint8: "int_val",
    tf.int64: "int64_val",
    tf.bool: "bool_val",
}


def tensor(dtype, values, shape=None):
    shape = [len(values)] if shape is None else shape
    dims = [TensorShapeProto.Dim(size=size) for size in shape]
    return TensorProto(
        dtype=dtype.as_datatype_enum,
        tensor_shape=TensorShapeProto(dim=dims),
        **{FIELDS[dtype]: values},
    )


def text(*values, shape=None):
    return tensor(tf.string, values, shape)


def floats(*values, shape=None):
    return tensor(tf.float32, values, shape)


def ints(*values, shape=None):
    return tensor(tf.int32, values, shape)


def longs(*values, shape=None):
    return tensor(tf.int64, values, shape)


def bools(*values, shape=None):
    return tensor(tf.bool, values, shape)


def content(values, dtype):
    """A TensorProto with `tensor_content`."""
    array = np.array(values, dtype.as_numpy_dtype)
    proto = tensor(dtype, [], array.shape)
    proto.tensor_content = array.tobytes()
    return proto
