"""A sequence as one vector: what a learned query finds in it."""

import keras
from keras import ops

from kseq.ops import masked_softmax, weighted_sum


@keras.saving.register_keras_serializable(package="kseq")
class AttentionPooling(keras.layers.Layer):
    """The weighted mean of a sequence, by attention from a learned query.

        energies = c . tanh(W h + b)
        weights = softmax(energies) over the real positions
        output = sum of weights * h

    Axes before the time axis are free: words of sentences of documents,
    (B, L, W, D), are pooled to sentences, (B, L, D).

    Args:
        units: int, size of the learned query c.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (..., T, D) float.
        inputs_mask: (..., T) bool, True at real positions.
        return_weights: bool, whether to return the weights too.

    Returns:
        output, (..., D), or `(output, weights)` with weights (..., T). Where
        no position is real, both are zero.

    Raises:
        ValueError: if `units` is not positive.

    Example:
        >>> words = np.ones((2, 3, 7, 16))  # 2 documents, 3 sentences
        >>> sentences, weights = AttentionPooling(8)(words, return_weights=True)
        >>> sentences.shape, weights.shape
        (TensorShape([2, 3, 16]), TensorShape([2, 3, 7]))

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, equations 5 to 7.
    """

    def __init__(self, units, **kwargs):
        if units < 1:
            raise ValueError(f"units must be positive. Received: units={units}")
        super().__init__(**kwargs)
        self.supports_masking = (
            True  # or Keras warns where a layer hands one on
        )
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

    def call(self, inputs, inputs_mask=None, return_weights=False):
        energies = ops.squeeze(self.query(self.hidden(inputs)), -1)
        weights = masked_softmax(energies, inputs_mask)  # (..., T)
        output = weighted_sum(ops.expand_dims(weights, -2), inputs)
        output = ops.squeeze(output, -2)
        return (output, weights) if return_weights else output

    def compute_mask(self, inputs, previous_mask):
        return None  # the axis that it was of is gone

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-2], inputs_shape[-1])

    def compute_output_spec(self, *args, **kwargs):
        # How many outputs there are depends on the arguments: trace `call`.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
