"""The built-in Morse code as transcripts of recordings."""

import numpy as np
import tensorflow as tf

from kseq.data.speech.audio_preprocessor import AudioPreprocessor
from kseq.data.speech.morse import SAMPLE_RATE, SIZES, morse
from kseq.data.speech.recorded_features import recorded_features
from kseq.data.speech.transcripts import Transcripts

_WINDOW, _STEP = 0.03, 0.02  # seconds


def morse_transcripts(num_mels: int, max_seconds: float) -> dict:
    """The splits of the built-in Morse code and its preprocessor, by name.

    Args:
        num_mels: see `AudioPreprocessor`.
        max_seconds: see `AudioPreprocessor`.
    """
    preprocessor = AudioPreprocessor(
        SAMPLE_RATE, num_mels, _WINDOW, _STEP, max_seconds
    )
    found = {split: morse(split) for split in SIZES}
    samples = {
        f"{split}-{number}.wav": wave
        for split, part in found.items()
        for number, wave in enumerate(part.samples, start=1)
    }

    def audio(name):
        wave = np.float32(samples[name])[:, None] / 2**15
        return tf.audio.encode_wav(wave, SAMPLE_RATE).numpy()

    stored = recorded_features(list(samples), audio, preprocessor)
    splits, start = {}, 0
    for split, part in found.items():
        end = start + len(part.texts)
        splits[split] = Transcripts(
            stored.names[start:end],
            part.texts,
            stored,
            list(range(start, end)),
            audio,
            part.spans,
        )
        start = end
    return {**splits, "preprocessor": preprocessor}
