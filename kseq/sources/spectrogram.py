"""The spectrogram that a model reads, as an image."""

import numpy as np
import tensorflow as tf

from kseq.data.speech.wav_samples import wav_samples

_WINDOW, _STEP = 0.025, 0.01  # seconds
_BANDS = 64  # rows of an image of a WAV file
_RATIO = 4  # an image is about this much wider than high
_RANGE = 8.0  # of natural logarithms that is shown


def spectrogram(sound, seconds: float | None = None) -> bytes:
    """Draws features (S, F), or the bytes of a WAV file.

    Args:
        sound: either of them.
        seconds: that are drawn from its start; None for all.

    Returns:
        A PNG image, time from left to right, high frequencies at the top; b""
        where there is nothing to see.
    """
    if isinstance(sound, str | bytes):
        frames = _log_energies(sound)
    else:
        frames = np.asarray(sound, np.float32)
        frames = frames[np.isfinite(frames).all(axis=1)]  # the rest is padding
    if seconds is not None:
        frames = frames[: max(round(seconds / _STEP), 1)]
    if not frames.size:
        return b""
    if not isinstance(sound, str | bytes):
        # Each feature in its own range: they differ by orders of magnitude.
        frames = (frames - frames.mean(axis=0)) / (frames.std(axis=0) + 1e-6)
    low, high = np.percentile(frames, (5, 99.5))
    shades = np.clip((frames - low) / max(high - low, 1e-6), 0, 1)
    pixels = np.uint8(255 * (1 - shades)).T[::-1]
    rows = max(round(pixels.shape[1] / _RATIO / pixels.shape[0]), 1)
    pixels = np.repeat(pixels, rows, axis=0)
    return tf.io.encode_png(pixels[:, :, None]).numpy()


def _log_energies(audio):
    """(S, F) logarithms of the energy of a WAV file; empty if it is none."""
    found, rates = wav_samples([audio])
    rate, samples = int(rates[0]), found.values.numpy()
    size, step = int(rate * _WINDOW), int(rate * _STEP)
    if min(size, step) < 1 or len(samples) < size:
        return np.zeros((0, 1))
    windows = np.lib.stride_tricks.sliding_window_view(samples, size)[::step]
    energies = np.abs(np.fft.rfft(windows * np.hanning(size))) ** 2
    places = np.linspace(0, energies.shape[1], _BANDS + 1).astype(int)[:-1]
    bands = np.add.reduceat(energies, np.unique(places), axis=1)
    logs = np.log(bands + 1e-9)
    return np.maximum(logs, logs.max() - _RANGE)
