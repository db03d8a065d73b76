"""Steps of recurrent layers, and a loop over time."""

from keras import ops, tree


def scan_time(step, state, inputs, unroll=False):
    """States after each step of a loop over the time axis.

    Args:
        step: function from the state and the inputs of one step, nests of
            (B, ...), to the next state.
        state: the initial state.
        inputs: nest of (B, T, ...).
        unroll: bool, whether to unroll the loop, for T known in advance.

    Returns:
        the states, a nest of (B, T, ...).
    """
    if unroll:
        length = tree.flatten(inputs)[0].shape[1]
        if not isinstance(length, int) or length < 1:
            raise ValueError(
                "A loop is unrolled over a known, positive number of steps. "
                f"Received: unroll=True, {length} steps"
            )
        states = []
        for t in range(length):
            at_step = tree.map_structure(lambda x, t=t: x[:, t], inputs)
            states.append(step(state if t == 0 else states[-1], at_step))
        return tree.map_structure(lambda *x: ops.stack(x, axis=1), *states)

    def advance(state, inputs):
        state = step(state, inputs)
        return state, state

    _, states = ops.scan(advance, state, _swap_batch_and_time(inputs))
    return _swap_batch_and_time(states)


def _swap_batch_and_time(nest):
    return tree.map_structure(lambda x: ops.swapaxes(x, 0, 1), nest)


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
