"""SpecAugment: random masking and time stretching of spectrograms."""

import math

import keras
from keras import ops

from kseq.layers.check_mask import check_mask
from kseq.layers.layer_config import config_of
from kseq.layers.random_numbers import random_uniform
from kseq.user_error import BELOW_ONE, check_integers, check_number


@keras.saving.register_keras_serializable(package="kseq")
class SpecAugment(keras.layers.Layer):
    """Masks times and features at random in training, and stretches the time.

    Each row has masks of its own. The width of one is drawn uniformly from 0
    to `time_width` or `feature_width`, but not above the length of the row,
    and its position from all where it fits. Masked values are 0, the mean of
    normalized features.

    Before that, the time of each row is resampled by a factor drawn uniformly
    from 1 - `stretch` to 1 + `stretch`, with linear interpolation. The paper
    warps the time about one point instead, and finds that it helps least.

    Args:
        time_masks: int, masks of consecutive frames in each row.
        time_width: int, largest width of one.
        feature_masks: int, masks of consecutive features in each row.
        feature_width: int, largest width of one.
        stretch: float in [0, 1).
        seed: int, or None for a random seed.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        source: (B, S, F) float, a vector of features for each frame.
        source_mask: (B, S) bool, True at real frames, which come first.
        training: bool, whether to augment.

    Returns:
        source (B, S', F) and its mask (B, S') bool. S' is S * (1 + stretch),
        rounded up, in training, and S otherwise.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> augment = SpecAugment(time_width=2, stretch=0.25)
        >>> source, mask = np.ones((3, 20, 8)), np.ones((3, 20), bool)
        >>> source, mask = augment(source, mask, training=True)
        >>> source.shape, mask.shape
        (TensorShape([3, 25, 8]), TensorShape([3, 25]))

    Reference:
        Park et al. 2019, arXiv:1904.08779, section 2.
    """

    def __init__(
        self,
        time_masks: int = 2,
        time_width: int = 20,
        feature_masks: int = 2,
        feature_width: int = 4,
        stretch: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        check_integers(
            minimum=0,
            time_masks=time_masks,
            time_width=time_width,
            feature_masks=feature_masks,
            feature_width=feature_width,
        )
        check_number("stretch", stretch, 0, BELOW_ONE, "in [0, 1)")
        super().__init__(**kwargs)
        self.supports_masking = True
        self.time_masks = time_masks
        self.time_width = time_width
        self.feature_masks = feature_masks
        self.feature_width = feature_width
        self.stretch = stretch
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, source, source_mask, training: bool | None = None):
        check_mask("source_mask", source_mask, *source.shape[:2])
        if not training:
            return source, source_mask
        if self.stretch:
            source, source_mask = self._stretch(source, source_mask)

        batch, time, size = ops.shape(source)
        lengths = ops.sum(ops.cast(source_mask, "int32"), axis=1)
        frames = self._draw_kept(
            lengths, time, self.time_masks, self.time_width
        )
        sizes = ops.full((batch,), size, dtype="int32")
        features = self._draw_kept(
            sizes, size, self.feature_masks, self.feature_width
        )
        kept = ops.logical_and(frames[:, :, None], features[:, None])
        return source * ops.cast(kept, source.dtype), source_mask

    def _draw_kept(self, lengths, most, count, width):
        """False in `count` masks within each length: (B,) -> (B, most)."""
        lengths = ops.cast(lengths, "float32")[:, None]
        shape = (ops.shape(lengths)[0], count)
        widths = ops.floor(self._draw(shape) * (width + 1))
        widths = ops.minimum(widths, lengths)
        starts = ops.floor(self._draw(shape) * (lengths - widths + 1))
        places = ops.arange(most, dtype="float32")
        after = places >= starts[:, :, None]  # (B, count, most)
        before = places < (starts + widths)[:, :, None]
        return ops.logical_not(ops.any(ops.logical_and(after, before), axis=1))

    def _stretch(self, source, mask):
        """Resamples the time of each row."""
        batch, time, size = ops.shape(source)
        lengths = ops.sum(ops.cast(mask, "float32"), axis=1)
        draws = self._draw((batch,))
        factors = 1 + self.stretch * (2 * draws - 1)
        new_lengths = ops.maximum(
            ops.round(lengths * factors), ops.minimum(lengths, 1.0)
        )
        if ops.is_tensor(time):
            more = ops.ceil(ops.cast(time, "float32") * self.stretch)
            new_time = time + ops.cast(more, time.dtype)
        else:
            new_time = time + math.ceil(time * self.stretch)

        # Each new frame is a point in the row, between two old ones.
        new = ops.arange(new_time, dtype="float32")
        ratio = lengths / ops.maximum(new_lengths, 1.0)
        last = ops.maximum(lengths - 1, 0.0)[:, None]
        points = (new + 0.5) * ratio[:, None] - 0.5  # (B, S')
        points = ops.minimum(ops.maximum(points, 0.0), last)
        left = ops.floor(points)
        right = ops.minimum(left + 1, last)

        rows = ops.reshape(source, (batch * time, size))
        starts = ops.arange(batch, dtype="int32")[:, None] * time

        def frames(places):
            return ops.take(rows, starts + ops.cast(places, "int32"), axis=0)

        new_mask = new < new_lengths[:, None]
        real = ops.cast(new_mask, "float32")
        share = ((points - left) * real)[..., None]
        rest = ((1 - points + left) * real)[..., None]
        stretched = frames(left) * ops.cast(rest, source.dtype)
        stretched += frames(right) * ops.cast(share, source.dtype)
        return stretched, new_mask

    def _draw(self, shape):
        return random_uniform(shape, self.seed_generator)

    def compute_mask(self, source, previous_mask):
        return None  # the mask is an output

    def compute_output_shape(self, source_shape, source_mask_shape=None):
        return source_shape, source_shape[:-1]

    # The outputs have two dtypes: trace `call`.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict:
        return config_of(self, SpecAugment)
