"""A sequence read in both directions and pooled by attention."""

import keras
from keras import ops

from kseq.layers.attention_pooling import AttentionPooling


@keras.saving.register_keras_serializable(package="kseq")
class RecurrentPooling(keras.layers.Layer):
    """A sequence read in both directions and pooled by attention.

        h_t = [forward GRU(x)_t; backward GRU(x)_t]
        output = sum of weights_t * h_t

    One level of hierarchical attention: words to a sentence, or sentences to
    a document.

    Args:
        units: int, U, of each direction.
        attention_units: int, size of the learned query, see
            `AttentionPooling`.
        cell: "gru" or "lstm".
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, T, D) float.
        inputs_mask: (B, T) bool, True at real positions.
        return_weights: bool, whether to return the weights too.

    Returns:
        output, (B, 2 U), or `(output, weights)` with weights (B, T). Where no
        position is real, both are zero.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> words = np.ones((3, 7, 16))
        >>> mask = np.ones((3, 7), bool)
        >>> RecurrentPooling(5, attention_units=8)(words, mask).shape
        TensorShape([3, 10])

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, section 2.2.
    """

    def __init__(self, units, attention_units, cell="gru", **kwargs):
        if units < 1:
            raise ValueError(f"units must be positive. Received: units={units}")
        if cell not in ("gru", "lstm"):
            raise ValueError(
                f'cell must be "gru" or "lstm". Received: cell={cell!r}'
            )
        super().__init__(**kwargs)
        self.units = units
        self.attention_units = attention_units
        self.cell = cell
        recurrent = keras.layers.GRU if cell == "gru" else keras.layers.LSTM
        self.recurrent = keras.layers.Bidirectional(
            recurrent(units, return_sequences=True, dtype=self.dtype_policy),
            dtype=self.dtype_policy,
            name="recurrent",
        )
        self.pooling = AttentionPooling(
            attention_units, dtype=self.dtype_policy, name="pooling"
        )

    def build(self, inputs_shape):
        self.recurrent.build(inputs_shape)
        self.pooling.build((*inputs_shape[:-1], 2 * self.units))

    def call(self, inputs, inputs_mask, return_weights=False):
        # cuDNN refuses a sequence of no length. The first position of such a
        # one is read as if it were real, and then has no weight.
        first = ops.equal(ops.arange(ops.shape(inputs)[1]), 0)
        hidden = self.recurrent(inputs, mask=ops.logical_or(inputs_mask, first))
        return self.pooling(hidden, inputs_mask, return_weights=return_weights)

    def compute_output_shape(self, inputs_shape):
        return (inputs_shape[0], 2 * self.units)

    def compute_output_spec(self, *args, **kwargs):
        # How many outputs there are depends on the arguments: trace `call`.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "attention_units": self.attention_units,
            "cell": self.cell,
        }
