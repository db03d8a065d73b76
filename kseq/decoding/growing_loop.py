"""A while loop in the graph over tensors that grow."""

import tensorflow as tf


def growing_loop(goes_on, advance, start):
    """`while goes_on(x): x = advance(x)` in the graph, for tensors that grow.

    An axis that `advance` changes (the length of a cache) may have any size
    in a later round; all others keep their static size, which layers need.

    Args:
        goes_on: callable, x -> bool scalar.
        advance: callable, x -> x.
        start: nest of tensors, the first x.

    Returns:
        The last x.
    """
    return tf.while_loop(
        goes_on,
        lambda x: [advance(x)],
        [start],
        shape_invariants=[_shapes(advance, start)],
    )[0]


def _shapes(advance, start):
    """The sizes that are the same before and after a round, None for others."""
    specs = tf.nest.map_structure(
        lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype), start
    )
    traced = tf.function(advance, autograph=False).get_concrete_function(specs)
    return tf.nest.map_structure(
        lambda before, after: tf.TensorShape(
            [
                size if size == then else None
                for size, then in zip(before.shape, after.shape, strict=True)
            ]
        ),
        start,
        traced.structured_outputs,
    )
