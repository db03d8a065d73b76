"""Steps of recurrent layers, and a loop over time."""

import keras
from keras import ops, tree


def scan_time(step, state, inputs, read=None, unroll=False):
    """States after each step of a loop over the time axis.

    On TensorFlow, XLA compiles the loop and its gradient where it knows T when
    it compiles, whether T was known when the loop was traced or not.

    Args:
        step: function from the state and the inputs of one step, nests of
            (B, ...), to the next state.
        state: the initial state.
        inputs: nest of (B, T, ...).
        read: function from a state to the part of it that is returned; None
            for all of it.
        unroll: bool, whether to unroll the loop, for T known in advance.

    Returns:
        what `read` returns of the states, a nest of (B, T, ...).
    """
    read = read or (lambda state: state)
    if unroll:
        return _unrolled(step, state, inputs, read)
    by_time = tree.map_structure(_swap_batch_and_time, inputs)
    if keras.backend.backend() == "tensorflow":
        states = _while_loop(step, state, by_time, read)
    else:

        def advance(state, inputs):
            state = step(state, inputs)
            return state, read(state)

        _, states = ops.scan(advance, state, by_time)
    return tree.map_structure(_swap_batch_and_time, states)


def _unrolled(step, state, inputs, read):
    length = tree.flatten(inputs)[0].shape[1]
    if not isinstance(length, int) or length < 1:
        raise ValueError(
            "A loop is unrolled over a known, positive number of steps. "
            f"Received: unroll=True, {length} steps"
        )
    states = []
    for t in range(length):
        at_step = tree.map_structure(lambda x, t=t: x[:, t], inputs)
        state = step(state, at_step)
        states.append(read(state))
    return tree.map_structure(lambda *x: ops.stack(x, axis=1), *states)


def _while_loop(step, state, inputs, read):
    """The loop of TensorFlow, over the first axis of the inputs.

    `ops.scan` sets no `maximum_iterations`, which the gradient needs under XLA,
    and stores the state in arrays of one element, which costs operations.
    """
    import tensorflow as tf

    first = [ops.convert_to_tensor(x) for x in tree.flatten(state)]
    inputs_at = [ops.convert_to_tensor(x) for x in tree.flatten(inputs)]
    time = inputs_at[0].shape[0]
    time = tf.shape(inputs_at[0])[0] if time is None else time

    def array_of(x, shape):
        return tf.TensorArray(x.dtype, size=time, element_shape=shape)

    inputs_at = [array_of(x, x.shape[1:]).unstack(x) for x in inputs_at]
    kept = read(tree.pack_sequence_as(state, first))
    arrays = [array_of(x, x.shape) for x in tree.flatten(kept)]

    def body(t, before, arrays):
        at_step = [x.read(t) for x in inputs_at]
        after = step(
            tree.pack_sequence_as(state, before),
            tree.pack_sequence_as(inputs, at_step),
        )
        written = tree.flatten(read(after))
        after = tree.flatten(after)
        for one, other in zip(after, before, strict=True):
            one.set_shape(other.shape)
        return (
            t + 1,
            after,
            [a.write(t, x) for a, x in zip(arrays, written, strict=True)],
        )

    # The number of steps is the only condition: XLA then knows it too.
    _, _, arrays = tf.while_loop(
        lambda *_: True, body, (0, first, arrays), maximum_iterations=time
    )
    return tree.pack_sequence_as(kept, [array.stack() for array in arrays])


def _swap_batch_and_time(x):
    return ops.swapaxes(x, 0, 1)


def lstm_step(gates, cell):
    """One step of an LSTM cell: gates (B, 4U), cell (B, U) -> hidden, cell.

    The gates are given before their activation, in the order input, forget,
    candidate, output. The forget gate has a constant bias of one, so that an
    untrained cell remembers (Jozefowicz et al. 2015).
    """
    admit, keep, candidate, emit = ops.split(gates, 4, axis=-1)
    cell = ops.sigmoid(keep + 1) * cell
    cell = cell + ops.sigmoid(admit) * ops.tanh(candidate)
    return ops.sigmoid(emit) * ops.tanh(cell), cell
