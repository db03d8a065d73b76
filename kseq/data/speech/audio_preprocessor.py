"""Recordings to the source inputs of a model."""

import math

import tensorflow as tf

from kseq.data.files.source import Source, string_signature
from kseq.data.speech.frame_preprocessor import FramePreprocessor
from kseq.data.speech.wav_samples import wav_samples
from kseq.user_error import ArgumentError, check_integers

_LOWEST = 20.0  # hertz
_FLOOR = 1e-6  # of the energy of a mel band, that of silence


class AudioPreprocessor:
    """The bytes of WAV files to the source inputs of a model, in the graph.

        frames = log(max(mel spectrogram, 1e-6))

    which are then normalized as those of `FramePreprocessor`.

    Every preprocessor has the same attributes and methods.

    Args:
        sample_rate: int, samples per second; a recording with a different one
            is blank.
        num_mels: int, F, bands of the mel scale, from 20 hertz to half the
            sample rate.
        window: float, length of a frame in seconds.
        step: float, seconds from a frame to the next.
        max_seconds: float, of a recording; the rest is cut.

    Call arguments:
        audio: (B,) string, the bytes of WAV files of 16-bit PCM. Channels are
            averaged.

    Returns:
        `Source`, see `FramePreprocessor`. Silence, and any other file, is
        blank.

    Raises:
        ValueError: an argument is out of range.

    Example:
    >>> preprocessor = AudioPreprocessor(sample_rate=8000, num_mels=20)
    >>> tone = np.sin(np.arange(8000, dtype="float32"))[:, None]
    >>> source = preprocessor([tf.audio.encode_wav(tone, 8000), b"?"])
    >>> source.inputs["source"].shape, source.blank.numpy()
    (TensorShape([2, 98, 20]), array([False,  True]))

    Reference:
        Davis and Mermelstein 1980, 10.1109/TASSP.1980.1163420, without the
        cosine transform.
    """

    input_name = "audio"  # of the served signature
    input_signature = string_signature

    def __init__(
        self,
        sample_rate: int,
        num_mels: int = 40,
        window: float = 0.025,
        step: float = 0.01,
        max_seconds: float = 60.0,
    ):
        check_integers(sample_rate=sample_rate, maximum=192_000)
        check_integers(num_mels=num_mels, maximum=256)
        self.sample_rate = sample_rate
        self.num_mels = num_mels
        self.window = window
        self.step = step
        self.max_seconds = max_seconds
        self._window = self._samples("window", window, most=1)
        self._step = self._samples("step", step, most=1)
        self._most = self._samples("max_seconds", max_seconds, most=36_000)
        self.frames = FramePreprocessor(
            num_mels,
            frames_per_second=sample_rate / self._step,
            max_frames=max(self._most // self._step, 1),
        )

    def __call__(self, audio) -> Source:
        samples, _ = wav_samples(audio, self.sample_rate)
        is_cut = samples.row_lengths() > self._most
        features = self._features(samples[:, : self._most])
        # A frame that is not finite is padding.
        frames = features.to_tensor(math.nan, shape=(None, None, self.num_mels))
        return self.frames.source_of(frames, is_cut)

    def features(self, audio) -> tf.RaggedTensor:
        """(B,) string -> (B, S, F) float32, ragged; not normalized.

        An item that is silent, or not such a WAV file, has no frames. One that
        is too long has more than `frames.max_frames`, but not all.
        """
        samples, _ = wav_samples(audio, self.sample_rate)
        most = self._most + self._window + self._step
        return self._features(samples[:, :most])

    def _features(self, samples):
        size = 2 ** (self._window - 1).bit_length()
        mels = tf.signal.linear_to_mel_weight_matrix(
            self.num_mels,
            size // 2 + 1,
            self.sample_rate,
            _LOWEST,
            self.sample_rate / 2,
        )

        def log_mels(samples):
            """(N,) -> (S, F), one by one: items do not affect each other."""
            is_silent = tf.reduce_all(samples == 0)
            missing = tf.maximum(self._window - tf.size(samples), 0)
            padded = tf.pad(samples, [[0, missing]])
            waves = tf.signal.stft(padded, self._window, self._step, size)
            energies = tf.matmul(tf.square(tf.abs(waves)), mels)
            frames = tf.math.log(tf.maximum(energies, _FLOOR))
            return frames[: tf.where(is_silent, 0, tf.shape(frames)[0])]

        spec = tf.RaggedTensorSpec(
            (None, self.num_mels), tf.float32, ragged_rank=0
        )
        features = tf.map_fn(log_mels, samples, fn_output_signature=spec)
        # Those of no items lack an axis.
        frames = tf.reshape(features.flat_values, (-1, self.num_mels))
        return features.with_flat_values(frames)

    def _samples(self, name, value, most):
        least = 1 / self.sample_rate
        if not isinstance(value, int | float) or not least <= value <= most:
            raise ArgumentError(
                f"{name} must be from one sample to {most} seconds. "
                f"Received: {name}={value!r}"
            )
        return round(value * self.sample_rate)

    @property
    def num_features(self) -> int:
        """Number of features of a frame."""
        return self.num_mels

    def get_config(self) -> dict:
        """All arguments."""
        names = ("sample_rate", "num_mels", "window", "step", "max_seconds")
        return {name: getattr(self, name) for name in names}

    def tokens(self, inputs) -> tf.Tensor:
        """See `FramePreprocessor.tokens`."""
        return self.frames.tokens(inputs)
