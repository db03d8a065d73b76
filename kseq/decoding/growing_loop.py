"""A while loop in the graph over tensors that grow."""

import tensorflow as tf


def growing_loop(goes_on, advance, start):
    """`while goes_on(x): x = advance(x)` in the graph, for tensors that grow.

    An axis whose size is 0 at the start, as the length of a cache, may have
    any size later, and the batch may have any size. All other sizes that are
    known stay known, as the layers in `advance` need it.

    Args:
        goes_on: callable, x -> bool scalar.
        advance: callable, x -> x.
        start: nest of tensors, batch first, the first x.

    Returns:
        The last x.
    """

    def shape(tensor):
        return tf.TensorShape([None, *(n or None for n in tensor.shape[1:])])

    return tf.while_loop(
        goes_on,
        lambda x: [advance(x)],
        [start],
        shape_invariants=[tf.nest.map_structure(shape, start)],
    )[0]
