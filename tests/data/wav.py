"""WAV files as the standard library writes them."""

import io
import wave

import numpy as np


def wav(samples, sample_rate=8000, channels=1, width=2):
    """The bytes of a file. Samples are from -1 to 1, of all channels."""
    file = io.BytesIO()
    with wave.open(file, "wb") as opened:
        opened.setnchannels(channels)
        opened.setsampwidth(width)
        opened.setframerate(sample_rate)
        values = np.round(np.asarray(samples) * (2 ** (8 * width - 1) - 1))
        opened.writeframes(values.astype({1: "u1", 2: "<i2", 4: "<i4"}[width]))
    return file.getvalue()


def tone(seconds=0.2, hertz=440, sample_rate=8000):
    """Samples of a tone."""
    times = np.arange(round(seconds * sample_rate)) / sample_rate
    return 0.5 * np.sin(2 * np.pi * hertz * times)
