"""Makes tracing faster; the graphs are the same.

Half of the suite's time is tracing. TensorFlow runs what is replaced here for
every operation that it adds to a graph.
"""

import contextlib

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import (
    auto_control_deps,
    func_graph,
    op_def_library,
    ops,
)
from tensorflow.python.util import tf_stack

_WITH_RESOURCES = {tf.resource, tf.variant}


def trace_faster():
    """Replaces functions of TensorFlow in this process."""
    # The stack of an operation: 80 frames under pytest.
    stack = tf_stack.extract_stack()
    tf_stack.extract_stack = lambda stacklevel=1: stack

    # For resources that an operation only reads, TensorFlow looks up an
    # attribute, which most have not: an exception in C++ and in Python.
    resources_of = auto_control_deps._get_resource_inputs

    def resources(op):
        kinds = {tensor.dtype for tensor in op.inputs}
        return resources_of(op) if kinds & _WITH_RESOURCES else ()

    auto_control_deps._get_resource_inputs = resources

    # The error message would be composed before the type is checked.
    check_type = op_def_library._SatisfiesTypeConstraint

    def satisfies(dtype, attr_def, param_name):
        if dtype not in attr_def.allowed_values.list.type:
            check_type(dtype, attr_def, param_name)

    op_def_library._SatisfiesTypeConstraint = satisfies

    # Each operation makes its graph the default graph, which it is already.
    enter = func_graph.FuncGraph.as_default

    def as_default(graph):
        if ops.get_default_graph() is graph and not context.executing_eagerly():
            return contextlib.nullcontext(graph)
        return enter(graph)

    func_graph.FuncGraph.as_default = as_default
