"""Vectors, unchanged, to the source inputs of a model."""

import math

import tensorflow as tf

from kseq.data.files.source import Source
from kseq.user_error import check_integers


class VectorPreprocessor:
    """Sequences of vectors, unchanged, to the source inputs of a model.

    Every preprocessor has the same attributes and methods.

    Args:
        num_features: int, F, of a vector.

    Call arguments:
        vectors: (B, T, F) float. A vector with a number that is not finite is
            padding.

    Returns:
        `Source`: `inputs` is `{"source"}`, (B, T, F) float32, zeros at padding.

    Raises:
        ValueError: if `num_features` is not positive.

    Example:
    >>> preprocessor = VectorPreprocessor(num_features=2)
    >>> source = preprocessor([[[0.0, 1.0], [np.nan, np.nan]]])
    >>> source.inputs["source"].numpy().tolist(), source.lengths.numpy()
    ([[[0.0, 1.0], [0.0, 0.0]]], array([1], dtype=int32))
    """

    input_name = "vectors"  # of the served signature

    def __init__(self, num_features: int):
        check_integers(num_features=num_features)
        self.num_features = num_features

    def __call__(self, vectors) -> Source:
        vectors = tf.cast(vectors, tf.float32)
        missing = tf.maximum(1 - tf.shape(vectors)[1], 0)
        vectors = tf.pad(
            vectors, [[0, 0], [0, missing], [0, 0]], constant_values=math.nan
        )
        real = tf.reduce_all(tf.math.is_finite(vectors), axis=2)
        lengths = tf.math.count_nonzero(real, axis=1, dtype=tf.int32)
        return Source(
            inputs={"source": tf.where(real[:, :, None], vectors, 0.0)},
            lengths=lengths,
            truncated=tf.zeros_like(real[:, 0]),
            blank=lengths == 0,
        )

    @property
    def input_signature(self) -> dict[str, tf.TensorSpec]:
        """The inputs of a served signature, passed to a call by name."""
        shape = (None, None, self.num_features)
        return {"vectors": tf.TensorSpec(shape, tf.float32, name="vectors")}

    def get_config(self) -> dict:
        """All arguments."""
        return {"num_features": self.num_features}
