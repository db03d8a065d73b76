"""The built-in corpus of sounds: words in Morse code, with letter times."""

import random
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.split_range import different_examples, split_range
from kseq.data.speech.audio_preprocessor import AudioPreprocessor
from kseq.data.speech.recorded_features import recorded_features
from kseq.data.speech.transcripts import Transcripts

SIZES = {"train": 12_000, "validation": 300, "test": 1_000}
_OF_WORDS = {"train": 8_000, "validation": 200, "test": 400}
SAMPLE_RATE = 4_000  # samples per second

_SIGNS = (
    *(".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---"),
    *("-.-", ".-..", "--", "-.", "---", ".--.", "--.-", ".-.", "...", "-"),
    *("..-", "...-", ".--", "-..-", "-.--", "--.."),
)
_CODE = dict(zip(string.ascii_lowercase, _SIGNS, strict=True))
_UNITS = {".": 1, "-": 3}
_LETTER_GAP, _WORD_GAP = 3, 7  # units
_DOT = (0.04, 0.07)  # seconds: 30 to 17 words a minute
_JITTER = 0.15  # of the length of each tone and pause
_PITCH = (400, 900)  # hertz
_LOUDNESS = (0.2, 0.6)  # 1 is full scale
_NOISE = (0.01, 0.1)  # standard deviation
_EDGE = 0.004  # seconds in which a tone rises and falls, to avoid clicks
_SILENCE = (0.05, 0.4)  # seconds before and after
_WINDOW, _STEP = 0.03, 0.02  # seconds, of the features


class Recordings(NamedTuple):
    """Sounds of Morse code.

    Args:
        texts: list of str.
        samples: list of int16 arrays.
        spans: list of lists of (start, end) in seconds, one for each character
            of the text; that of a space is the pause.
    """

    texts: list[str]
    samples: list[np.ndarray]
    spans: list[list[tuple[float, float]]]


def morse(
    split: str,
    size: int | None = None,
    seed: int = 0,
    words: Sequence[str] = (),
) -> Recordings:
    """Words in Morse code at different speeds and pitches, in noise.

    One or two words of 3 to 5 random letters each, at 17 to 30 words a minute,
    with tones and pauses that vary by up to 15 %. The pitch is between 400 and
    900 hertz, the signal-to-noise ratio between 0 and 33 dB. No two recordings
    have the same text, unless it is one of `words`.

    Args:
        split: "train", "validation" or "test".
        size: number of recordings, at most and by default `SIZES[split]`.
        seed: of all that is drawn.
        words: of letters a to z, of which one is drawn for each recording; by
            default words are random letters.

    Returns:
        Recordings.

    Example:
    >>> found = morse("train", size=2)
    >>> found.texts
    ['bzmx zjxf', 'dcuz']
    >>> [round(seconds, 2) for seconds in found.spans[0][0]]
    [0.14, 0.66]
    """
    places = split_range(split, size, SIZES)
    if words:
        draw = random.Random(seed)
        texts = [draw.choice(words) for _ in range(places.stop)][places.start :]
    else:
        texts = different_examples(places, seed, _text)
    recordings = [
        _recording(text, np.random.default_rng([seed, number]))
        for number, text in zip(places, texts, strict=True)
    ]
    samples, spans = map(list, zip(*recordings, strict=True))
    return Recordings(texts, samples, spans)


def _text(draw) -> str:
    return " ".join(
        "".join(draw.choices(list(_CODE), k=draw.randint(3, 5)))
        for _ in range(draw.randint(1, 2))
    )


def _recording(text, draw):
    """Samples, and the start and end of each character."""
    tones, spans = [], []  # (start, end) in seconds
    dot, time = draw.uniform(*_DOT), draw.uniform(*_SILENCE)

    def advance(units):
        nonlocal time
        start = time
        time += units * dot * draw.uniform(1 - _JITTER, 1 + _JITTER)
        return start, time

    for character in text:
        if character == " ":
            spans.append(advance(_WORD_GAP - _LETTER_GAP))
            continue
        start = time
        for number, sign in enumerate(_CODE[character]):
            if number:
                advance(1)
            tones.append(advance(_UNITS[sign]))
        spans.append((start, time))
        advance(_LETTER_GAP)
    return _sound(tones, time + draw.uniform(*_SILENCE), draw), spans


def _sound(tones, seconds, draw):
    times = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    envelope = np.zeros_like(times)
    for start, end in tones:
        rise = np.clip((times - start) / _EDGE, 0, 1)
        fall = np.clip((end - times) / _EDGE, 0, 1)
        envelope += np.minimum(rise, fall)
    pitch, loudness = draw.uniform(*_PITCH), draw.uniform(*_LOUDNESS)
    wave = loudness * envelope * np.sin(2 * np.pi * pitch * times)
    wave += draw.uniform(*_NOISE) * draw.standard_normal(len(times))
    return np.int16(np.round(np.clip(wave, -1, 1) * 32767))


def morse_transcripts(
    num_mels: int, max_seconds: float, words: Sequence[str] = ()
) -> dict:
    """The splits of the built-in Morse code and its preprocessor, by name."""
    preprocessor = AudioPreprocessor(
        SAMPLE_RATE, num_mels, _WINDOW, _STEP, max_seconds
    )
    sizes = _OF_WORDS if words else SIZES
    found = {split: morse(split, sizes[split], words=words) for split in SIZES}
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
