"""XLA, by which TensorFlow compiles functions with `jit_compile=True`."""

import keras


def is_compiled_by_xla():
    """Whether XLA compiles what is called here, on TensorFlow.

    It has no operations of cuDNN, and no sizes that depend on values.
    """
    if keras.backend.backend() != "tensorflow":
        return False
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import control_flow_util

    graph = ops.get_default_graph()
    return control_flow_util.GraphOrParentsInXlaContext(graph)
