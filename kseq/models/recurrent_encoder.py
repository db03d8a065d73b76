"""The recurrent layers that read a source."""

from keras import layers, ops

from kseq.layers.recurrent_layer import (
    bidirectional_layer,
    check_two_directions,
    recurrent_layer,
    states_of_both,
)
from kseq.ops import masked_mean
from kseq.user_error import ArgumentError


def recurrent_encoder(count, units, cell, bidirectional, policy, reverse=False):
    """Creates a list of `count` layers, `encoder_0` and so on.

    Two directions have half of the units each; with `reverse`, one direction
    reads from the end.

    Raises:
        ArgumentError: if an argument does not fit the others.
    """
    if bidirectional:
        check_two_directions(units)
    if reverse and bidirectional:
        raise ArgumentError(
            "reverse_source needs an encoder of one direction. "
            "Received: bidirectional=True"
        )

    def encoder_layer(name):
        width = units // 2 if bidirectional else units
        layer = recurrent_layer(
            *(cell, width, policy),
            return_state=True,
            go_backwards=reverse,
            name=name,
        )
        if not bidirectional:
            return layer
        return bidirectional_layer(layer, dtype=policy, name=name)

    return [encoder_layer(f"encoder_{i}") for i in range(count)]


def read_source(encoder, x, mask, dropout, bidirectional):
    """The states of the last layer, and the last state of each layer.

    Args:
        encoder: list of layers of `recurrent_encoder`.
        x: (B, S, E) float.
        mask: (B, S) bool.
        dropout: layer, applied to the input of each layer.
        bidirectional: bool, whether each layer is bidirectional.

    Returns:
        (B, S, U) float, and for each layer a list of its last hidden state
        (B, U) and, of an LSTM, its last cell.
    """
    last_states = []
    for layer in encoder:
        x, *states = layer(dropout(x), mask=mask)
        if getattr(layer, "go_backwards", False):
            x = ops.flip(x, axis=1)  # in the order of the source
        if bidirectional:
            states = states_of_both(states)
        last_states.append(states)
    return x, last_states


def initial_state_layers(count, units, cell, policy):
    """Creates the layers of `initial_states`: a list for each of `count`."""
    states = ("hidden", "cell") if cell == "lstm" else ("hidden",)
    return [
        [
            layers.Dense(units, "tanh", dtype=policy, name=f"start_{i}_{state}")
            for state in states
        ]
        for i in range(count)
    ]


def decoder_states(last_states, decoder):
    """The first states of a decoder, from the last ones of its encoder.

    Args:
        last_states: a list of states for each layer of the encoder.
        decoder: `AttentionDecoder`.

    Returns:
        See `AttentionDecoder`.

    Raises:
        ArgumentError: if the states are of other cells or of another width.
    """
    count = 2 if decoder.cell == "lstm" else 1
    last = len(last_states) - 1
    starts = [last_states[min(i, last)] for i in range(decoder.num_layers)]
    for states in starts:
        sizes = [state.shape[-1] for state in states]
        if sizes[:count] != [decoder.units] * count:
            raise ArgumentError(
                "The last states of source_layer must match the cells of the "
                f"decoder: cell={decoder.cell!r}, units={decoder.units}. "
                f"Received: states of the sizes {sizes}"
            )
    return {
        "hidden": [states[0] for states in starts],
        "cell": [states[1] for states in starts if count == 2],
    }


def initial_states(starts, memory, mask):
    """First states of a decoder whose encoder has no last ones.

        state = tanh(W mean(memory) + b)

    Args:
        starts: the output of `initial_state_layers`.
        memory: (B, S, D) float.
        mask: (B, S) bool.

    Returns:
        A list with a list of states (B, U) for each layer.

    Reference:
        Xu et al. 2015, arXiv:1502.03044, section 3.1.2.
    """
    mean = masked_mean(memory, mask)
    return [[start(mean) for start in layer] for layer in starts]
