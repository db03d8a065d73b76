"""Positions added to features: sinusoids, or learned vectors."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.layers.output_spec import output_spec
from kseq.ops import sinusoids
from kseq.ops.masks import PLACES
from kseq.user_error import check_choice, check_integers


@keras.saving.register_keras_serializable(package="kseq")
class SinusoidalPositionalEncoding(keras.layers.Layer):
    """Adds sines and cosines of the position to the features.

        output[t] = inputs[t] + [sin(p r_0), ..., cos(p r_0), ...]
        p = start + t,  r_i = 10000^(-2 i / D)

    The sinusoids are computed in float32, since distant positions become
    equal in half precision.

    Args:
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (..., T, D) float, D even.
        start: int or int tensor, () or (B,), position of `inputs[..., 0, :]`.

    Returns:
        (..., T, D), in the dtype of `inputs`.

    Raises:
        ValueError: if D is odd.

    Example:
        >>> inputs = np.zeros((2, 3, 8))
        >>> SinusoidalPositionalEncoding()(inputs, start=10).shape
        TensorShape([2, 3, 8])

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(min_ndim=3)

    def build(self, input_shape):
        sinusoids(0, input_shape[-1])  # refuses an odd D

    def call(self, inputs, start=0):
        table = sinusoids(_positions(inputs, start), inputs.shape[-1])
        return inputs + ops.cast(table, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self) -> dict:
        return config_of(self, SinusoidalPositionalEncoding)


@keras.saving.register_keras_serializable(package="kseq")
class LearnedPositionalEmbedding(keras.layers.Layer):
    """Adds a learned vector of the position to the features.

        output[t] = inputs[t] + embeddings[start + t]

    Args:
        max_length: int, number of positions that have a vector.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (..., T, D) float.
        start: int or int tensor, () or (B,), position of `inputs[..., 0, :]`.

    Returns:
        (..., T, D), in the dtype of `inputs`.

    Raises:
        ValueError: if `start` + T is a Python integer and exceeds
            `max_length`. If it is a tensor, positions past `max_length` get
            the last vector, on all devices.

    Example:
        >>> inputs = np.zeros((2, 3, 8))
        >>> LearnedPositionalEmbedding(max_length=512)(inputs).shape
        TensorShape([2, 3, 8])

    Reference:
        Gehring et al. 2017, arXiv:1705.03122, section 3.1.
    """

    def __init__(self, max_length: int, **kwargs):
        check_integers(max_length=max_length)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(min_ndim=3)
        self.max_length = max_length

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.max_length, input_shape[-1]),
            initializer="uniform",
        )

    def check_arguments(self, inputs, start=0):
        """Raises ValueError for a length that is known and too large."""
        end = (inputs.shape[-2] or 0) + (start if isinstance(start, int) else 0)
        if end > self.max_length:
            raise ValueError(
                f"There are vectors for max_length={self.max_length} "
                f"positions. Received: inputs that end at position {end}"
            )

    def call(self, inputs, start=0):
        self.check_arguments(inputs, start)
        positions = _positions(inputs, start)
        positions = ops.clip(positions, 0, self.max_length - 1)
        positions = ops.cast(positions, PLACES)
        return inputs + ops.take(self.embeddings, positions, axis=0)

    def compute_output_shape(self, input_shape):
        return input_shape

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return {**super().get_config(), "max_length": self.max_length}


def _positions(inputs, start):
    """Of float32, with which TensorFlow computes on a GPU, unlike int32."""
    positions = ops.arange(ops.shape(inputs)[-2], dtype="int32")
    if not isinstance(start, int):
        start = ops.cast(start, "float32")
    if len(getattr(start, "shape", ())):
        start = ops.reshape(start, (-1, *[1] * (len(inputs.shape) - 2)))
    return start + ops.cast(positions, "float32")


POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "none")


def position_layer(positions, max_length, dtype, name):
    """A layer that adds positions to embeddings, one of `POSITIONS`.

    Where attention reads them, or nothing does, embeddings stay as they are.

    Raises:
        ArgumentError: if `positions` is none of them.
    """
    check_choice("positions", positions, POSITIONS)
    if positions == "learned":
        return LearnedPositionalEmbedding(max_length, dtype=dtype, name=name)
    if positions == "sinusoidal":
        return SinusoidalPositionalEncoding(dtype=dtype, name=name)
    return _NoPositions(dtype=dtype, name=name)


class _NoPositions(keras.layers.Layer):
    def call(self, inputs, start=0):
        return inputs

    def get_config(self) -> dict:
        return config_of(self, _NoPositions)
