"""Recordings converted to WAV files of 16-bit PCM, which models take."""

import contextlib
import functools
import io
import math
import os
import wave
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.data_error import DataError
from kseq.data.files.media_folder import LARGEST_FILE, read_file
from kseq.data.speech.wav_samples import wav_chunks, wav_samples

_LOUDEST = 2.0**15
_UNFINISHED = bytes(4), b"\xff\xff\xff\xff"  # sizes of recorders and pipes
_FORMATS = frozenset(
    (
        *("WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF", "NIST"),
        *("FLAC", "OGG", "MP3"),
    )
)
_MORE = 2  # seconds of a recording that is too long, and then is still
_BLOCK = 2**20  # numbers that are decoded together
_RATES = range(1000, 768_001)  # that are resampled
_EXTRA = "the extra audio of kseq: pip install soundfile soxr"


def read_recording(
    path: str | os.PathLike,
    sample_rate: int | None = None,
    resample: bool = False,
    sounds: bool = False,
    notes: list[str] | None = None,
    content: bytes | None = None,
    max_seconds: float = math.inf,
) -> bytes:
    """A file as a WAV file of 16-bit PCM, which is decoded to check it.

    Such a file is returned as it is. WAV files of other sample formats, FLAC,
    Ogg, MP3 and some others are converted by the library soundfile to 16 bits
    and one channel, the mean of all. If the header says that there are no
    samples, because the recorder was interrupted, those that follow are used;
    of a truncated WAV file those that are there.

    Args:
        path: of the file.
        sample_rate: int, samples per second that it must have; None for any.
        resample: whether a file of another rate is resampled to it.
        sounds: whether silence is refused.
        notes: list to which messages about the file are added.
        content: its bytes if they are known; `path` is then for messages.
        max_seconds: float, what a caller leaves out if it is longer: a little
            more is decoded.

    Raises:
        DataError: it cannot be read or decoded, has a different sample rate, or
            is silent.
    """
    audio = read_file(path) if content is None else content
    found = _inspect(audio)
    rate = found.rate
    size = _size_in_header(audio, found)
    note = _note_on_size(size, there=len(audio) - found.start)
    if not rate:
        if size in _UNFINISHED:
            audio = _finished(audio, found)
        new_rate = sample_rate if resample else None
        audio = _converted(path, audio, new_rate, max_seconds)
        found = _inspect(audio)
        rate = found.rate
    else:
        audio = _start_of(audio, found, max_seconds)
        if resample and rate != sample_rate:
            [samples] = wav_samples([audio])[0].numpy()
            samples = _resampled(path, [samples], rate, sample_rate)
            audio = _wav(path, samples, sample_rate)
            rate = sample_rate
    if sample_rate is not None and rate != sample_rate:
        raise DataError(
            f"{path} has {rate} samples per second; expected {sample_rate}. "
            "Resample it, for example with --resample."
        )
    if sounds and found.is_silent:
        raise DataError(
            f"{path} is silent." if found.size else f"{path} has no samples."
        )
    if notes is not None and note and found.size:
        notes.append(f"{path} is {note} All samples that it has are used.")
    return audio


def has_samples(audio: bytes) -> bool:
    """Whether a WAV file of 16-bit PCM has any samples."""
    return _inspect(audio).size > 0


class _Found(NamedTuple):
    """The samples of a WAV file, if they are 16-bit PCM, and its header."""

    rate: int
    size: int
    is_silent: bool
    start: int
    length: int


def _inspect(audio) -> _Found:
    return _Found(*map(int, _facts()(tf.constant([audio]))))


@functools.cache
def _facts():
    def facts(audio):
        samples, rates = wav_samples(audio)
        is_silent = tf.reduce_all(samples.values == 0)
        chunks = wav_chunks(audio[0])
        sizes = chunks["start"], chunks["size"]
        return rates[0], tf.size(samples.values), is_silent, *sizes

    return tf.function(
        facts,
        input_signature=[tf.TensorSpec((1,), tf.string)],
        autograph=False,
    )


class _Bytes(io.BytesIO):
    """Bytes that ignore the invalid positions of a broken file.

    An exception cannot pass through the library; it would be printed.
    """

    def seek(self, offset, whence=io.SEEK_SET):
        with contextlib.suppress(ValueError, OSError):
            super().seek(offset, whence)
        return self.tell()


def _start_of(audio, found, max_seconds):
    """The same WAV file without what `max_seconds` leaves out."""
    samples = (max_seconds + _MORE) * found.rate
    if found.size <= samples:
        return audio
    size = min(found.length, len(audio) - found.start) // found.size
    return audio[: found.start + size * int(samples)]


def _converted(path, audio, sample_rate, max_seconds) -> bytes:
    what = f"{path} is not a readable 16-bit PCM WAV file"
    try:
        import soundfile
    except (ModuleNotFoundError, OSError):  # or its C library
        raise DataError(f"{what}. Other recordings need {_EXTRA}") from None
    try:
        with soundfile.SoundFile(_Bytes(audio)) as file:
            if file.format not in _FORMATS:
                raise DataError(f"{what}, but {file.format}.")
            rate = file.samplerate
            blocks = _blocks(file, (max_seconds + _MORE) * rate)
            if sample_rate is not None and rate != sample_rate:
                blocks = _resampled(path, blocks, rate, sample_rate)
                rate = sample_rate
            return _wav(path, blocks, rate)
    except DataError:
        raise
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError):
        raise DataError(
            f"{what}, nor another recording that soundfile reads."
        ) from None


def _size_in_header(audio, found) -> bytes:
    is_wav = audio.startswith(b"RIFF") and found.start
    return audio[found.start - 4 : found.start] if is_wav else b""


def _note_on_size(header: bytes, there: int) -> str:
    """What is wrong with the number of bytes in the header, or ""."""
    if header in _UNFINISHED:
        return "unfinished: its header does not say how long it is."
    size = int.from_bytes(header, "little")
    if size <= there:
        return ""
    return f"truncated: it has {there} of {size} bytes of samples."


def _finished(audio, found) -> bytes:
    """The same file with its actual number of bytes in the header."""
    size = min(found.length, len(audio) - found.start).to_bytes(4, "little")
    return audio[: found.start - 4] + size + audio[found.start :]


def _blocks(file, most) -> Iterator[np.ndarray]:
    """The samples of a file, the mean of its channels; not many more."""
    size = max(_BLOCK // file.channels, 1)
    count = 0
    while count < most and len(
        block := file.read(size, "float32", always_2d=True)
    ):
        count += len(block)
        # A broken file of floats can have any value.
        yield np.clip(np.nan_to_num(block), -1, 1).mean(axis=1)


def _resampled(path, blocks: Iterable[np.ndarray], rate, sample_rate):
    try:
        import soxr
    except ModuleNotFoundError:
        raise DataError(f"{path}: resampling needs {_EXTRA}") from None
    if rate not in _RATES:
        raise DataError(
            f"{path} has {rate} samples per second, which cannot be resampled."
        )
    stream = soxr.ResampleStream(rate, sample_rate, 1, dtype="float32")
    for block in blocks:
        for part in np.array_split(block, 1 + len(block) // _BLOCK):
            yield stream.resample_chunk(part)
    yield stream.resample_chunk(np.zeros(0, "float32"), last=True)


def _wav(path, blocks, sample_rate) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as opened:
        opened.setparams((1, 2, sample_rate, 0, "NONE", None))
        for block in blocks:
            values = np.round(block * _LOUDEST)
            values = np.clip(values, -_LOUDEST, _LOUDEST - 1)
            opened.writeframesraw(values.astype("<i2").tobytes())
            if file.tell() > LARGEST_FILE:
                raise DataError(f"{path} is longer than 256 MiB of WAV.")
    return file.getvalue()
