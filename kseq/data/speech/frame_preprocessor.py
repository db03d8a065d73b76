"""Frames of features, as of speech, to the source inputs of a model."""

import math

import tensorflow as tf

from kseq.data.files.source import Source
from kseq.user_error import check_integers, check_number

_FRAMES_OF_A_TOKEN = 4  # of an answer, at the fastest; it has half as many
_LEAST_VARIANCE = 1e-6


class FramePreprocessor:
    """Frames of features to the source inputs of a model.

        source = (frames - mean) / sqrt(variance), of each item and feature

    Every preprocessor has the same attributes and methods.

    Args:
        num_features: int, F, of a frame.
        frames_per_second: float, for the names of frames.
        max_frames: int, maximum number of frames of an item; the rest is cut.

    Call arguments:
        frames: (B, S, F) float. A frame with a number that is not finite is
            padding.

    Returns:
        `Source`: `inputs` is `{"source", "source_mask"}`, (B, S, F) float32
        and (B, S) bool. `lengths` are those of the longest texts that can be
        expected, 25 tokens for each 100 frames.

    Raises:
        ValueError: an argument is out of range.

    Example:
    >>> preprocessor = FramePreprocessor(num_features=2)
    >>> source = preprocessor([[[0.0, 1.0], [2.0, 1.0], [np.nan, 0.0]]])
    >>> source.inputs["source"].numpy().round(3).tolist()
    [[[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]]
    >>> source.inputs["source_mask"].numpy().tolist()
    [[True, True, False]]
    """

    input_name = "frames"  # of the served signature

    def __init__(
        self,
        num_features: int,
        frames_per_second: float = 100.0,
        max_frames: int = 6000,
    ):
        check_integers(num_features=num_features, max_frames=max_frames)
        limits = math.ulp(0.0), 1e9, "positive and finite"
        check_number("frames_per_second", frames_per_second, *limits)
        self.num_features = num_features
        self.frames_per_second = float(frames_per_second)
        self.max_frames = max_frames

    def __call__(self, frames) -> Source:
        frames = tf.cast(frames, tf.float32)
        is_cut = tf.reduce_any(_are_real(frames[:, self.max_frames :]), axis=1)
        return self.source_of(frames[:, : self.max_frames], is_cut)

    def source_of(self, frames, is_cut) -> Source:
        """The source inputs of frames (B, S, F) of which some were cut."""
        missing = tf.maximum(1 - tf.shape(frames)[1], 0)
        frames = tf.pad(
            frames, [[0, 0], [0, missing], [0, 0]], constant_values=math.nan
        )
        real = _are_real(frames)
        lengths = tf.math.count_nonzero(real, axis=1, dtype=tf.int32)
        return Source(
            inputs={"source": _normalized(frames, real), "source_mask": real},
            lengths=-(-lengths // _FRAMES_OF_A_TOKEN),
            truncated=is_cut,
            blank=lengths == 0,
        )

    @property
    def input_signature(self) -> dict[str, tf.TensorSpec]:
        """The inputs of a served signature, passed to a call by name."""
        shape = (None, None, self.num_features)
        return {"frames": tf.TensorSpec(shape, tf.float32, name="frames")}

    def get_config(self) -> dict:
        """All arguments."""
        names = ("num_features", "frames_per_second", "max_frames")
        return {name: getattr(self, name) for name in names}

    def tokens(self, inputs) -> tf.Tensor:
        """The time of each frame in seconds, (B, S) string; "" if padding."""
        real = inputs["source_mask"]
        frames = tf.range(tf.shape(real)[1])
        seconds = tf.cast(frames, tf.float32) / self.frames_per_second
        names = tf.strings.as_string(seconds, precision=2)
        return tf.where(real, names[None, :], "")


def _are_real(frames):
    return tf.reduce_all(tf.math.is_finite(frames), axis=2)


def _normalized(frames, real):
    is_real = real[:, :, None]
    # A constant feature is 0, not the rounding error of a mean.
    frames = tf.where(is_real, frames - frames[:, :1], 0.0)
    count = tf.reduce_sum(tf.cast(is_real, tf.float32), axis=1, keepdims=True)
    count = tf.maximum(count, 1.0)
    mean = tf.reduce_sum(frames, axis=1, keepdims=True) / count
    frames = tf.where(is_real, frames - mean, 0.0)
    squares = tf.reduce_sum(tf.square(frames), axis=1, keepdims=True)
    return frames * tf.math.rsqrt(squares / count + _LEAST_VARIANCE)
