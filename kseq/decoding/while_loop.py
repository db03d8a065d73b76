"""A while loop in the graph over tensors that grow."""

import tensorflow as tf

# Of token ids and places in a loop: on a GPU, TensorFlow keeps and computes
# int32 in the memory of the host.
INTEGER = tf.int64


def while_loop(condition, body, start):
    """`while condition(x): x = body(x)` in the graph, for tensors that grow.

    An axis whose size is 0 at the start, as the length of a cache, may have
    any size later, and the batch may have any size. All other static sizes
    stay static because the layers in `body` need them.

    Args:
        condition: callable, x -> bool scalar.
        body: callable, x -> x.
        start: nest of tensors, batch first, the first x.

    Returns:
        The last x.
    """

    def shape(tensor):
        if tensor.shape.rank == 0:
            return tensor.shape
        return tf.TensorShape([None, *(n or None for n in tensor.shape[1:])])

    return tf.while_loop(
        condition,
        lambda x: [body(x)],
        [start],
        shape_invariants=[tf.nest.map_structure(shape, start)],
    )[0]
