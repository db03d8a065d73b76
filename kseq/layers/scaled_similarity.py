"""Similarities of vectors as logits."""

import math

import keras
from keras import ops

_FIRST = 1 / 0.07


@keras.saving.register_keras_serializable(package="kseq")
class ScaledSimilarity(keras.layers.Layer):
    """Dot products of vectors, times a learned positive number.

        logits = exp(s) * query . memory

    Cosines are between -1 and 1, so a softmax over them is almost uniform; the
    scale makes it sharper.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        query: (B, D) float.
        memory: (A, D) float.

    Returns:
        (B, A), in the dtype of the layer.

    Example:
        >>> similarity = ScaledSimilarity()
        >>> similarity(np.eye(2, 3), np.eye(4, 3)).shape
        TensorShape([2, 4])

    Reference:
        Radford et al. 2021, arXiv:2103.00020, section 2.3; the first scale is
        that of section 2.5, and here it has no limit.
    """

    def build(self, query_shape, memory_shape):
        self.log_scale = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(math.log(_FIRST)),
            name="log_scale",
        )

    def call(self, query, memory):
        scale = ops.exp(self.log_scale)
        return ops.matmul(query * scale, ops.transpose(memory))

    def compute_output_shape(self, query_shape, memory_shape):
        return (query_shape[0], memory_shape[0])
