"""Makes tracing faster; the graphs compute the same.

Half of the suite's time is tracing. TensorFlow runs what is replaced here for
every operation that it adds to a graph, or for every variable.
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
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.util import tf_stack

_WITH_RESOURCES = {tf.resource, tf.variant}


def trace_faster():
    """Replaces functions of TensorFlow in this process."""
    # The stack of an operation: 80 frames under pytest.
    stack = tf_stack.extract_stack()
    len(stack)  # looks its frames up: where functions are placed, it may crash
    tf_stack.extract_stack = lambda stacklevel=1: stack

    # Two fifths of the operations of a graph are constants, and most of them
    # equal: what a slice begins with, an axis, a zero.
    create_constant = ops._create_graph_constant

    def constant(value, dtype, shape, *others, **options):
        graph = ops.get_default_graph()
        if shape is not None or not _can_share(value, graph):
            return create_constant(value, dtype, shape, *others, **options)
        if not hasattr(graph, "shared_constants"):
            graph.shared_constants = {}
        made = graph.shared_constants
        key = type(value), repr(value), dtype
        if key not in made:
            made[key] = create_constant(value, dtype, shape, *others, **options)
        return made[key]

    ops._create_graph_constant = constant

    # No session runs while an operation is added.
    ops.Graph._mutation_lock = lambda graph: contextlib.nullcontext()

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

    # A name for debugging is part of the key of a kernel: each variable would
    # have a kernel of its own, which takes longer than the variable.
    make_handle = gen_resource_variable_ops.var_handle_op

    def handle(*, debug_name="", **options):
        debug_name = "" if context.executing_eagerly() else debug_name
        return make_handle(debug_name=debug_name, **options)

    gen_resource_variable_ops.var_handle_op = handle


def _can_share(value, graph):
    """Whether a constant is plain, and may be computed anywhere."""
    values = value if isinstance(value, list | tuple) else [value]
    return (
        isinstance(graph, func_graph.FuncGraph)
        and all(type(each) in (bool, int, str) for each in values)
        and not graph._control_dependencies_stack
        and not graph._device_function_stack
        and not graph._colocation_stack
    )
