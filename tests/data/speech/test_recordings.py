"""Files of recordings, of all formats that people have."""

import io
import struct
import sys

import numpy as np
import pytest

from kseq.data import DataError
from kseq.data.speech import recordings
from kseq.data.speech.recordings import read_recording
from kseq.data.speech.wav_samples import wav_samples
from tests.data.wav import tone, wav

soundfile = pytest.importorskip("soundfile")
GOOD = wav(tone())
CHUNK = b"LIST" + (3).to_bytes(4, "little") + b"abc\0"


def samples_of(audio):
    samples, [rate] = wav_samples([audio])
    return samples[0].numpy(), int(rate)


@pytest.mark.parametrize(
    ("name", "format", "subtype", "most"),
    [
        ("a.wav", "WAV", "PCM_U8", 2**-7),
        ("a.wav", "WAV", "PCM_24", 2**-15),
        ("a.wav", "WAV", "PCM_32", 2**-15),
        ("a.wav", "WAV", "FLOAT", 2**-15),
        ("a.wav", "WAV", "DOUBLE", 2**-15),
        ("a.wav", "WAV", "ULAW", 0.02),
        ("a.wav", "WAV", "ALAW", 0.02),
        ("a.wav", "WAV", "IMA_ADPCM", 0.05),
        ("a.wav", "WAVEX", "PCM_16", 2**-15),
        ("a.wav", "WAVEX", "PCM_24", 2**-15),
        ("a.wav", "RF64", "PCM_16", 2**-15),
        ("a.aiff", "AIFF", "PCM_16", 2**-15),
        ("a.flac", "FLAC", "PCM_16", 2**-15),
        ("a.flac", "FLAC", "PCM_24", 2**-15),
        ("a.ogg", "OGG", "VORBIS", 0.1),
        ("a.mp3", "MP3", "MPEG_LAYER_III", 0.1),
    ],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_all_formats(write, name, format, subtype, most, channels):
    sound = np.stack([tone(0.2, 300 * (1 + n)) for n in range(channels)], 1)
    file = io.BytesIO()
    soundfile.write(file, sound, 8000, subtype, format=format)
    audio = read_recording(write(name, file.getvalue()), 8000)
    found, rate = samples_of(audio)
    assert rate == 8000
    assert abs(len(found) - 1600) <= (1200 if subtype[0] == "M" else 505)
    if len(found) == 1600:
        error = np.abs(found - sound.mean(axis=1))
        assert error[50:-50].max() < 2.1 * most
    assert np.abs(found).max() > 0.2


def test_a_file_that_the_graph_reads_is_not_changed(write):
    stereo = wav(np.stack([tone(), -tone()], 1), 16_000, channels=2)
    for audio in (GOOD, stereo, GOOD[:12] + CHUNK + GOOD[12:]):
        assert read_recording(write("a.wav", audio), resample=False) == audio


@pytest.mark.parametrize("riff", [0, 36, 0xFFFFFFFF])
@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_what_is_there_of_an_unfinished_file_is_read(write, riff, size):
    header = GOOD[:4] + struct.pack("<I", riff) + GOOD[8:40]
    audio = header + struct.pack("<I", size) + GOOD[44:]
    found, _ = samples_of(read_recording(write("a.wav", audio), 8000))
    np.testing.assert_array_equal(found, samples_of(GOOD)[0])


@pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT", "ULAW"])
def test_an_unfinished_file_of_another_format(write, subtype):
    file = io.BytesIO()
    soundfile.write(file, tone(), 8000, subtype, format="WAV")
    audio = bytearray(file.getvalue())
    place = audio.index(b"data") + 4
    audio[place : place + 4] = bytes(4)
    found, _ = samples_of(read_recording(write("a.wav", bytes(audio)), 8000))
    assert len(found) >= 1600


def test_silent_and_empty_ones(write):
    """A chunk after no samples is not taken for samples."""
    silent = write("silent.wav", wav(np.zeros(80)))
    empty = write("empty.wav", wav([]))
    chunk = write("chunk.wav", wav([]) + CHUNK)
    for path, message in (
        (silent, "silent.wav is silent"),
        (empty, "empty.wav has no samples"),
        (chunk, "chunk.wav has no samples"),
    ):
        assert samples_of(read_recording(path))[1] == 8000
        with pytest.raises(DataError, match=message):
            read_recording(path, 8000, sounds=True)


@pytest.mark.parametrize("rate", [8000, 11_025, 44_100, 48_000])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_resampling(write, rate, subtype):
    pytest.importorskip("soxr")
    file = io.BytesIO()
    soundfile.write(file, tone(0.5, 440, rate), rate, subtype, format="WAV")
    path = write("a.wav", file.getvalue())
    found, sample_rate = samples_of(read_recording(path, 16_000, True))
    assert sample_rate == 16_000
    assert abs(len(found) - 8000) <= 2
    expected = tone(0.5, 440, 16_000)[500:7500]
    np.testing.assert_allclose(found[500:7500], expected, atol=0.01)
    if rate != 16_000:
        with pytest.raises(DataError, match=rf"{rate} samples per second"):
            read_recording(path, 16_000)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [8000, 16_000])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_what_is_too_long_is_not_decoded(
    write, monkeypatch, rate, subtype, channels
):
    pytest.importorskip("soxr")
    monkeypatch.setattr(recordings, "_BLOCK", 1000)
    sound = np.stack([tone(5)] * channels, 1)
    for format in ("WAV", "FLAC"):
        file = io.BytesIO()
        soundfile.write(file, sound, 8000, subtype, format=format)
        path = write("a.wav", file.getvalue())
        audio = read_recording(path, rate, resample=True, max_seconds=1.5)
        found, _ = samples_of(audio)
        assert 3.5 * rate - 2 <= len(found) <= 3.7 * rate
        if rate == 8000:
            np.testing.assert_allclose(found, tone(5)[: len(found)], atol=1e-4)
        audio = read_recording(path, rate, resample=True, max_seconds=3)
        assert abs(len(samples_of(audio)[0]) - 5 * rate) <= 2


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"RIFF", b"fLaC", b"OggS" * 9, b"<html>404</html>\n"),
        b"\0" * 999,
        # The library goes to a place before the file.
        b"FORM\x00\x00\x06nAIFFCOMM\x00\x00\x00\x12\x00\x01",
    ],
)
def test_what_is_no_recording(write, content):
    path = write("a.wav", content)
    with pytest.raises(DataError, match=r"a\.wav is not a readable 16-bit"):
        read_recording(path)


def test_why_a_recording_that_is_read_cannot_be_converted(write, monkeypatch):
    file = io.BytesIO()
    soundfile.write(file, tone(), 900, "PCM_16", format="FLAC")
    path = write("a.flac", file.getvalue())
    with pytest.raises(DataError, match=r"900 .* cannot be resampled"):
        read_recording(path, 16_000, resample=True)
    monkeypatch.setattr(recordings, "LARGEST_FILE", 99)
    with pytest.raises(DataError, match=r"longer than 256 MiB of WAV"):
        read_recording(path)


def test_without_the_libraries(write, monkeypatch):
    for name in ("soundfile", "soxr"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DataError, match="pip install soundfile soxr"):
        read_recording(write("a.flac", b"fLaC"))
    with pytest.raises(DataError, match="pip install soundfile soxr"):
        read_recording(write("a.wav", GOOD), 16_000, resample=True)
