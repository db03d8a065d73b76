"""Attention pooling of a sequence to one vector."""

import keras
from keras import ops

from kseq.layers.check_mask import check_mask
from kseq.layers.output_spec import output_spec
from kseq.ops import masked_softmax, weighted_sum
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class AttentionPooling(keras.layers.Layer):
    """The mean of a sequence, weighted by attention from a learned query.

        energies = c . tanh(W h + b)
        weights = softmax(energies) over the real positions
        output = sum of weights * h

    The inputs may have more leading axes: the pieces of the sentences of
    documents, (B, L, W, D), are pooled to sentences, (B, L, D).

    Args:
        units: int, size of the learned query c.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (..., T, D) float.
        inputs_mask: (..., T) bool, True at real positions. By default the
            Keras mask of `inputs`, if it has one.
        return_weights: bool, whether to return the weights too.
        mask: set by Keras; pass `inputs_mask` instead.

    Returns:
        output, (..., D), or `(output, weights)` with weights (..., T). Both
        are zero if all positions are masked.

    Raises:
        ValueError: if `units` is not a positive integer.

    Example:
        >>> pieces = np.ones((2, 3, 7, 16))  # 2 documents, 3 sentences
        >>> pooling = AttentionPooling(8)
        >>> sentences, weights = pooling(pieces, return_weights=True)
        >>> sentences.shape, weights.shape
        (TensorShape([2, 3, 16]), TensorShape([2, 3, 7]))

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, equations 5 to 7.
    """

    def __init__(self, units: int, **kwargs):
        check_integers(units=units)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(min_ndim=3)
        self.units = units
        self.hidden = keras.layers.Dense(
            units, activation="tanh", dtype=self.dtype_policy, name="hidden"
        )
        self.query = keras.layers.Dense(
            1, use_bias=False, dtype=self.dtype_policy, name="query"
        )

    def build(self, inputs_shape):
        self.hidden.build(inputs_shape)
        self.query.build((*inputs_shape[:-1], self.units))

    def call(
        self, inputs, inputs_mask=None, return_weights: bool = False, mask=None
    ):
        if inputs_mask is None:
            inputs_mask = mask
        if inputs_mask is not None:
            check_mask("inputs_mask", inputs_mask, *inputs.shape[:-1])
        energies = ops.squeeze(self.query(self.hidden(inputs)), -1)
        weights = masked_softmax(energies, inputs_mask)  # (..., T)
        output = weighted_sum(ops.expand_dims(weights, -2), inputs)
        output = ops.squeeze(output, -2)
        return (output, weights) if return_weights else output

    def compute_mask(self, inputs, previous_mask):
        return None  # the time axis is gone

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-2], inputs_shape[-1])

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}
