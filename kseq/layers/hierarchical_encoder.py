"""The words of each turn of a dialogue, and then the turns."""

import keras
from keras import ops

from kseq.layers.check_mask import check_mask
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of
from kseq.layers.recurrent_layer import (
    bidirectional_layer,
    check_two_directions,
    recurrent_layer,
    states_of_both,
)
from kseq.ops.masks import masked
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class HierarchicalEncoder(keras.layers.Layer):
    """Reads the words of each turn of a dialogue, and then the turns.

        h_i       = BLSTM(source_i)
        l         = BLSTM(v), v_i the last states of both directions of h_i
        memory_ij = [h_ij; l_i]

    A `source_layer` of `LSTMSeq2Seq`, whose decoder starts from the last
    states of l. With `HierarchicalBahdanauAttention` the decoder attends to
    words and to turns; without attention it reads those states alone.

    Args:
        units: even int, U, width of both layers: half of it for each
            direction.
        cell: "lstm", "gru" or "tanh".
        dropout: float, on the input of each layer and on the memory.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        source: (B, N, W, E) float, the words of N turns.
        source_mask: (B, N, W) bool, True at real words, which come first, as
            do the turns that have words.
        training: bool, whether to apply dropout.

    Returns:
        memory (B, N * W, 2 U), flat; its mask (B, N, W), which is
        `source_mask` and shows where the turns are; and a list with the last
        states of l, [hidden, cell] of an LSTM or [hidden], (B, U). Memory and
        states are zero where there are no words.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> source, mask = np.ones((2, 3, 7, 16)), np.ones((2, 3, 7), bool)
        >>> memory, mask, [states] = HierarchicalEncoder(8)(source, mask)
        >>> memory.shape, mask.shape, states[0].shape
        (TensorShape([2, 21, 16]), TensorShape([2, 3, 7]), TensorShape([2, 8]))

    Reference:
        Serban et al. 2016, arXiv:1507.04808, with the state of the turn
        concatenated to that of each word, and turns in both directions: this
        helps attention to find a turn that answers the last one.
    """

    returns_states = True

    def __init__(
        self, units: int, cell: str = "lstm", dropout: float = 0.0, **kwargs
    ):
        check_integers(units=units)
        check_two_directions(units)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=4)
        self.units = units
        self.cell = cell
        self.dropout = dropout
        policy = self.dtype_policy
        self.words, self.turns = (
            bidirectional_layer(
                recurrent_layer(
                    cell, units // 2, policy, return_state=True, name=name
                ),
                dtype=policy,
                name=name,
            )
            for name in ("words", "turns")
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")

    def build(self, source_shape, source_mask_shape=None):
        self.words.build((None, None, source_shape[-1]))
        self.turns.build((None, None, self.units))

    def call(self, source, source_mask, training: bool | None = None):
        check_mask("source_mask", source_mask, *source.shape[:3])
        batch, turns, words, size = ops.shape(source)
        x = self.dropout_layer(source, training=training)
        x, *states = self.words(
            ops.reshape(x, (batch * turns, words, size)),
            mask=ops.reshape(source_mask, (batch * turns, words)),
        )
        x = ops.reshape(x, (batch, turns, words, self.units))

        last_hidden, *_ = states_of_both(states)
        y = ops.reshape(last_hidden, (batch, turns, self.units))
        y = self.dropout_layer(y, training=training)
        has_words = ops.any(source_mask, axis=-1)
        y, *states = self.turns(y, mask=has_words)
        has_turns = ops.any(has_words, axis=-1)
        states = [masked(state, has_turns) for state in states_of_both(states)]

        y = ops.broadcast_to(y[:, :, None], ops.shape(x))
        memory = masked(ops.concatenate([x, y], axis=-1), source_mask)
        memory = ops.reshape(memory, (batch, turns * words, 2 * self.units))
        memory = self.dropout_layer(memory, training=training)
        return memory, source_mask, [states]

    def compute_mask(self, source, previous_mask):
        return None  # the mask is an output

    def compute_output_shape(self, source_shape, source_mask_shape=None):
        batch, turns, words, _ = source_shape
        known = None not in (turns, words)
        memory = batch, turns * words if known else None, 2 * self.units
        states = [(batch, self.units)] * (2 if self.cell == "lstm" else 1)
        return memory, (batch, turns, words), [states]

    def compute_output_spec(self, source, source_mask, training=None):
        # Not traced: JAX does not see that a product of sizes is one.
        memory, mask, [states] = self.compute_output_shape(source.shape)
        dtype = self.compute_dtype
        return (
            keras.KerasTensor(memory, dtype=dtype),
            keras.KerasTensor(mask, dtype="bool"),
            [[keras.KerasTensor(state, dtype=dtype) for state in states]],
        )

    def get_config(self) -> dict:
        return config_of(self, HierarchicalEncoder)
