"""Vectors of length one, and their similarities as logits."""

import math

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq", name="UnitProjection")
class NormalizedProjection(keras.layers.Layer):
    """A projection to vectors of length one.

        output = W x / |W x|

    The dot product of two such vectors is the cosine of their angle. The
    length is computed in float32.

    Args:
        dim: int, size of the output.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (..., D) float.

    Returns:
        (..., dim), in the dtype of the layer; zeros where W x is zero.

    Raises:
        ValueError: if `dim` is not a positive integer.

    Example:
        >>> vectors = NormalizedProjection(4)(np.random.normal(size=(2, 8)))
        >>> np.round(np.linalg.norm(vectors, axis=-1), 4)
        array([1., 1.], dtype=float32)
    """

    def __init__(self, dim: int, **kwargs):
        check_integers(dim=dim)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.dim = dim
        self.projection = keras.layers.Dense(
            dim, use_bias=False, dtype=self.dtype_policy, name="projection"
        )

    def build(self, inputs_shape):
        self.projection.build(inputs_shape)

    def call(self, inputs):
        x = ops.cast(self.projection(inputs), "float32")
        squared = ops.sum(ops.square(x), axis=-1, keepdims=True)
        # Near zero a slope of 1: that of the root overflows half precision.
        squared = ops.where(squared > 1e-24, squared, 1.0)
        unit = x * ops.rsqrt(squared)
        return ops.cast(unit, self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.dim)

    def get_config(self) -> dict:
        return {**super().get_config(), "dim": self.dim}


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

    def get_config(self) -> dict:
        return config_of(self, ScaledSimilarity)
