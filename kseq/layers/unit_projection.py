"""Vectors of length one."""

import keras
from keras import ops

from kseq.check_integers import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class UnitProjection(keras.layers.Layer):
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
        >>> vectors = UnitProjection(4)(np.random.normal(size=(2, 8)))
        >>> np.round(np.linalg.norm(vectors, axis=-1), 4)
        array([1., 1.], dtype=float32)
    """

    def __init__(self, dim, **kwargs):
        check_integers(dim=dim)
        super().__init__(**kwargs)
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

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}
