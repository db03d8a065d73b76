"""A sequence read in both directions and pooled by attention."""

import keras

from kseq.layers.attention_pooling import AttentionPooling
from kseq.layers.check_mask import check_mask
from kseq.layers.layer_config import config_of
from kseq.layers.output_spec import output_spec
from kseq.layers.recurrent_layer import bidirectional_layer, recurrent_layer
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class RecurrentPooling(keras.layers.Layer):
    """A sequence read in both directions and pooled by attention.

        h_t = [forward GRU(x)_t; backward GRU(x)_t]
        output = sum of weights_t * h_t

    One level of hierarchical attention: the words of a sentence, or the
    sentences of a document.

    Args:
        units: int, U, of each direction.
        attention_units: int, size of the learned query, see
            `AttentionPooling`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, T, D) float.
        inputs_mask: (B, T) bool, True at real positions. By default the
            Keras mask of `inputs`; without one, all positions are real.
        return_weights: bool, whether to return the weights too.
        mask: set by Keras; pass `inputs_mask` instead.

    Returns:
        output, (B, 2 U), or `(output, weights)` with weights (B, T). Both
        are zero if all positions are masked.

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

    def __init__(self, units: int, attention_units: int, **kwargs):
        check_integers(units=units, attention_units=attention_units)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.attention_units = attention_units
        self.recurrent = bidirectional_layer(
            recurrent_layer("gru", units, self.dtype_policy, name="gru"),
            dtype=self.dtype_policy,
            name="recurrent",
        )
        self.pooling = AttentionPooling(
            attention_units, dtype=self.dtype_policy, name="pooling"
        )

    def build(self, inputs_shape):
        self.recurrent.build(inputs_shape)
        self.pooling.build((*inputs_shape[:-1], 2 * self.units))

    def call(
        self, inputs, inputs_mask=None, return_weights: bool = False, mask=None
    ):
        if inputs_mask is None:
            inputs_mask = mask
        if inputs_mask is not None:
            check_mask("inputs_mask", inputs_mask, *inputs.shape[:2])
        hidden = self.recurrent(inputs, mask=inputs_mask)
        return self.pooling(hidden, inputs_mask, return_weights=return_weights)

    def compute_mask(self, inputs, previous_mask):
        return None  # the time axis is gone

    def compute_output_shape(self, inputs_shape):
        return (inputs_shape[0], 2 * self.units)

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return config_of(self, RecurrentPooling)
