"""Steps of recurrent layers, and a loop over time."""

import operator

import keras
from keras import ops, tree

from kseq.ops.features import project


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
    inputs = tree.map_structure(_swap_batch_and_time, inputs)
    _, states = _scan(step, state, inputs, read or (lambda x: x), unroll)
    return tree.map_structure(_swap_batch_and_time, states)


def lstm_over_time(
    inputs, kernel, recurrent_kernel, bias, states, mask=None, unroll=False
):
    """An LSTM over a sequence, with all of its gates from one product.

    Where the mask is False, the state stays as it is.

    Args:
        inputs: (B, T, D) float.
        kernel: (D, 4 U) float, of input, forget, candidate and output gate.
        recurrent_kernel: (U, 4 U) float.
        bias: (4 U,) or (B, 4 U) float, with the constant of the forget gate.
        states: hidden and cell, (B, U) float, before the first step.
        mask: (B, T) bool, or None.
        unroll: bool, see `scan_time`.

    Returns:
        The hidden states of all steps, (B, T, U), and the last states.
    """

    def step(states, projected):
        gates = projected + ops.matmul(states[0], recurrent_kernel)
        return list(lstm_step(gates, states[1], forget_bias=None))

    return _over_time(step, inputs, kernel, bias, states, mask, unroll)


def gru_over_time(
    inputs, kernel, recurrent_kernel, bias, states, mask=None, unroll=False
):
    """A GRU over a sequence, which resets its state after the product.

    Where the mask is False, the state stays as it is.

    Args:
        inputs: (B, T, D) float.
        kernel: (D, 3 U) float, of update gate, reset gate and candidate.
        recurrent_kernel: (U, 3 U) float.
        bias: (2, 3 U) float, of the products with inputs and with the state.
        states: a list of the state (B, U) float before the first step.
        mask: (B, T) bool, or None.
        unroll: bool, see `scan_time`.

    Returns:
        The states of all steps, (B, T, U), and a list of the last one.
    """

    def step(states, projected):
        [hidden] = states
        product = ops.matmul(hidden, recurrent_kernel) + bias[1]
        size = hidden.shape[-1]
        of_gates, of_candidate = ops.split(projected, [2 * size], axis=-1)
        gates, candidate = ops.split(product, [2 * size], axis=-1)
        update, reset = ops.split(ops.sigmoid(of_gates + gates), 2, axis=-1)
        candidate = ops.tanh(of_candidate + reset * candidate)
        return [candidate + update * (hidden - candidate)]

    return _over_time(step, inputs, kernel, bias[0], states, mask, unroll)


def _over_time(step, inputs, kernel, bias, states, mask, unroll):
    steps = {"inputs": project(_swap_batch_and_time(inputs), kernel) + bias}
    if mask is not None:
        steps["mask"] = _swap_batch_and_time(mask)

    def advance(before, at_step):
        after = step(before, at_step["inputs"])
        if mask is None:
            return after
        is_real = at_step["mask"][:, None]
        return [
            ops.where(is_real, new, old)
            for new, old in zip(after, before, strict=True)
        ]

    first = list(states)
    last, hidden = _scan(advance, first, steps, operator.itemgetter(0), unroll)
    return _swap_batch_and_time(hidden), last


def _scan(step, state, inputs, read, unroll):
    """The last state, and what is read of all, over the first axis."""
    if unroll:
        return _unrolled(step, state, inputs, read)
    if keras.backend.backend() == "tensorflow":
        return _while_loop(step, state, inputs, read)

    def advance(state, inputs):
        state = step(state, inputs)
        return state, read(state)

    return ops.scan(advance, state, inputs)


def _unrolled(step, state, inputs, read):
    length = tree.flatten(inputs)[0].shape[0]
    if not isinstance(length, int) or length < 1:
        raise ValueError(
            "A loop is unrolled over a known, positive number of steps. "
            f"Received: unroll=True, {length} steps"
        )
    states = []
    for t in range(length):
        at_step = tree.map_structure(lambda x, t=t: x[t], inputs)
        state = step(state, at_step)
        states.append(read(state))
    return state, tree.map_structure(lambda *x: ops.stack(x), *states)


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
    _, last, arrays = tf.while_loop(
        lambda *_: True, body, (0, first, arrays), maximum_iterations=time
    )
    states = [array.stack() for array in arrays]
    return (
        tree.pack_sequence_as(state, last),
        tree.pack_sequence_as(kept, states),
    )


def _swap_batch_and_time(x):
    return ops.swapaxes(x, 0, 1)


def lstm_step(gates, cell, forget_bias=1.0):
    """One step of an LSTM cell: gates (B, 4U), cell (B, U) -> hidden, cell.

    The gates are given before their activation, in the order input, forget,
    candidate, output. The forget gate has a constant bias of one, so that an
    untrained cell remembers (Jozefowicz et al. 2015); None where it is a part
    of the gates.
    """
    admit, keep, candidate, emit = ops.split(gates, 4, axis=-1)
    if forget_bias is not None:
        keep = keep + forget_bias
    cell = ops.sigmoid(keep) * cell
    cell = cell + ops.sigmoid(admit) * ops.tanh(candidate)
    return ops.sigmoid(emit) * ops.tanh(cell), cell
