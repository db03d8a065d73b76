"""Recurrent layers that halve the time of a long source."""

import keras
from keras import ops

from kseq.layers.check_mask import check_mask
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of, copy_of, with_layers
from kseq.layers.layer_normalization import LayerNormalization
from kseq.layers.recurrent_layer import (
    bidirectional_layer,
    check_two_directions,
    recurrent_layer,
)
from kseq.ops import with_padded_batch
from kseq.ops.masks import masked
from kseq.user_error import check_choice, check_integers

_CHANNELS = 32
_FRONT_ENDS = {"none": 0, "convolution": 2}  # times that each halves the time


@keras.saving.register_keras_serializable(package="kseq")
class PyramidalEncoder(keras.layers.Layer):
    """Recurrent layers that halve the time of a long source, such as speech.

        x_1    = BLSTM(source)
        x_j    = BLSTM(y), y_i = [x_{j-1, 2i}; x_{j-1, 2i+1}]
        memory = LayerNorm(x_n)

    A `source_layer` of `LSTMSeq2Seq` and `Transformer`. A position is real if
    the first of its two frames is; the second is 0 where it is padding.

    With the front end "convolution", the first layer reads the projection of
    two convolutions of the source, 3 x 3 over time and features, with ReLU and
    a stride of 2 in both. They shorten time by another factor of 4.

    Args:
        units: even int, D, of the memory and of each layer: half of it for
            each direction.
        num_layers: int, layers. Each after the first halves the time.
        front_end: "none" or "convolution".
        dropout: float, on the input of each layer and on the memory.
        augment: a `SpecAugment` that the source goes through first, or None.
            The encoder creates a copy with its own dtype policy.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        source: (B, S, F) float, a vector of features for each frame.
        source_mask: (B, S) bool, True at real frames, which come first.
        training: bool, whether to apply dropout and `augment`.

    Returns:
        memory (B, S', D), its mask (B, S') bool, and [], because no decoder
        starts from its states. S' is S / 2 ** (num_layers - 1), rounded up.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> source, mask = np.ones((2, 21, 16)), np.ones((2, 21), bool)
        >>> memory, mask, _ = PyramidalEncoder(8)(source, mask)
        >>> memory.shape, mask.shape
        (TensorShape([2, 6, 8]), TensorShape([2, 6]))

    Reference:
        Chan et al. 2016, arXiv:1508.01211, section 3.1, with four layers and
        no normalization; the convolutions of Weiss et al. 2017,
        arXiv:1703.08581.
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 3,
        front_end: str = "none",
        dropout: float = 0.0,
        augment: keras.layers.Layer | None = None,
        **kwargs,
    ):
        check_integers(units=units, num_layers=num_layers)
        check_two_directions(units)
        check_choice("front_end", front_end, list(_FRONT_ENDS))
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.num_layers = num_layers
        self.front_end = front_end
        self.dropout = dropout
        policy = self.dtype_policy
        self.augment = copy_of(augment, dtype=policy, name="augment")
        self.convolutions = [
            keras.layers.Conv2D(
                _CHANNELS,
                kernel_size=3,
                strides=2,
                data_format="channels_last",
                activation="relu",
                dtype=policy,
                name=f"convolution_{i}",
            )
            for i in range(_FRONT_ENDS[front_end])
        ]
        if self.convolutions:
            self.projection = keras.layers.Dense(
                units, dtype=policy, name="projection"
            )
        self.recurrent = [
            bidirectional_layer(
                recurrent_layer("lstm", units // 2, policy, name="lstm"),
                dtype=policy,
                name=f"recurrent_{i}",
            )
            for i in range(num_layers)
        ]
        self.norm = LayerNormalization(dtype=policy, name="norm")
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")

    @property
    def stride(self) -> int:
        """Frames of the source for each position of the memory."""
        return 2 ** (self.num_layers - 1 + len(self.convolutions))

    def build(self, source_shape, source_mask_shape=None):
        if self.augment:
            self.augment.build(source_shape)
        size, channels = source_shape[-1], 1
        for convolution in self.convolutions:
            convolution.build((None, None, size + 2, channels))
            size, channels = _half(size), _CHANNELS
        if self.convolutions:
            self.projection.build((None, None, size * channels))
            size = self.units
        for layer in self.recurrent:
            layer.build((None, None, size))
            size = 2 * self.units
        self.norm.build((None, None, self.units))

    def call(self, source, source_mask, training: bool | None = None):
        check_mask("source_mask", source_mask, *source.shape[:2])
        if self.augment:
            source, source_mask = self.augment(
                source, source_mask, training=training
            )
        x, mask = masked(source, source_mask), source_mask
        if self.convolutions:
            x, mask = self._convolve(x, mask)
        for i, layer in enumerate(self.recurrent):
            if i > 0:
                x, mask = _in_pairs(x, mask)
            x = self.dropout_layer(x, training=training)
            x = masked(layer(x, mask=mask), mask)
        memory = masked(self.norm(x), mask)
        return self.dropout_layer(memory, training=training), mask, []

    def _convolve(self, x, mask):
        """(B, S, F), (B, S) -> (B, S', D), (B, S'), a quarter of the time."""
        x = x[..., None]  # (B, S, F, 1)
        for convolution in self.convolutions:
            # "same" would shift the frames of an odd S by one.
            x = ops.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
            mask = mask[:, ::2]
            x = masked(with_padded_batch(convolution, x), mask)
        batch, time, *size = ops.shape(x)
        x = ops.reshape(x, (batch, time, size[0] * size[1]))
        return self.projection(x), mask

    def compute_mask(self, source, previous_mask):
        return None  # the mask is an output

    def compute_output_shape(self, source_shape, source_mask_shape=None):
        batch, time, _ = source_shape
        if time is not None:
            for _ in range(len(self.convolutions) + self.num_layers - 1):
                time = _half(time)
        return (batch, time, self.units), (batch, time), []

    def compute_output_spec(self, source, source_mask, training=None):
        # Not traced: JAX does not see that half of a time is half of it.
        memory, mask, states = self.compute_output_shape(source.shape)
        return (
            keras.KerasTensor(memory, dtype=self.compute_dtype),
            keras.KerasTensor(mask, dtype="bool"),
            states,
        )

    def get_config(self) -> dict:
        return config_of(self, PyramidalEncoder, "augment")

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "augment"))


def _half(size):
    """Half of it, rounded up."""
    return (size + 1) // 2


def _in_pairs(x, mask):
    """Neighbours side by side: (B, S, D) -> (B, S / 2, 2 D), and their mask."""
    second = ops.pad(x, [(0, 0), (0, 1), (0, 0)])[:, 1::2]
    return ops.concatenate([x[:, ::2], second], axis=-1), mask[:, ::2]
