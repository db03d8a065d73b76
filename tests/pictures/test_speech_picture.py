"""The attention to speech over its time: in TensorBoard, and on a page."""

import numpy as np
import pytest

from kseq.pictures import attention_page, speech_picture
from kseq.serving import Attention
from kseq.serving.attention import with_pictures
from kseq.sources.spectrogram import spectrogram
from tests.data.wav import tone, wav
from tests.pictures.pixels import grey

TIMES = [f"{place / 10:.2f}" for place in range(6)]
TOKENS = ["▁a", "▁$1$", "▁<b>", "</s>"]
WEIGHTS = np.eye(6)[:4]


@pytest.mark.parametrize("of_sound", [True, False])
def test_the_weights_are_seen(of_sound):
    picture = spectrogram(wav(tone())) if of_sound else None
    png = speech_picture(WEIGHTS, TIMES, TOKENS, picture)
    other = speech_picture(WEIGHTS[::-1], TIMES, TOKENS, picture)
    assert grey(png).shape == grey(other).shape
    assert (grey(png) != grey(other)).mean() > 0.02


@pytest.mark.parametrize(
    ("weights", "times", "tokens"),
    [
        (np.zeros((1, 0)), [], ["</s>"]),
        (np.zeros((0, 6)), TIMES, []),
        (np.eye(1), ["0.00"], ["▁a"]),
        (np.zeros((999, 6)), TIMES, ["▁a"] * 999),
    ],
)
def test_extremes_are_drawn(weights, times, tokens):
    assert speech_picture(weights, times, tokens).startswith(b"\x89PNG")
    page = attention_page(
        [Attention(times, tokens, weights, False, b"")], of_pictures=True
    )
    assert "<!doctype html>" in page


def test_a_page_names_times():
    sound = spectrogram(wav(tone()))
    attention = Attention(TIMES, TOKENS, WEIGHTS, False, sound)
    page = attention_page([attention], of_pictures=True)
    assert "0.10 s" in page
    assert "repeat(1, 1fr) / repeat(6, 1fr)" in page
    assert attention._repr_png_().startswith(b"\x89PNG")


def test_a_tone_is_a_line_at_its_height():
    pixels = grey(spectrogram(wav(tone(0.5, hertz=1000))))
    darkest = pixels.mean(axis=1).argmin() / len(pixels)
    assert darkest == pytest.approx(0.75, abs=0.05)  # of 4000, from the top


def test_features_are_drawn_with_time_to_the_right():
    frames = np.zeros((40, 4))
    frames[30:, 3] = 1
    pixels = grey(spectrogram(frames))
    assert pixels.shape[1] == 40
    assert pixels[0, 35] < pixels[0, 5] - 100
    assert pixels[-1, 35] == pixels[-1, 5]


@pytest.mark.parametrize("sound", [np.eye(100), wav(tone(1.0))])
def test_only_what_was_read_of_a_recording_is_drawn(sound):
    """Its weights are those of the first 0.2 seconds, as its picture is."""
    times = ["0.00", "0.04", "0.08", "0.12", "0.16"]
    found = Attention(times, ["a"], np.full((1, 5), 0.2))
    cut = found._replace(truncated=True)
    whole, part = (
        grey(each.picture).shape[1]
        for each in with_pictures([found, cut], "frames", [sound, sound])
    )
    assert whole == pytest.approx(100, abs=3)
    assert part == 20


@pytest.mark.parametrize(
    "sound",
    [b"", b"RIFF", wav(tone(0.001)), np.zeros((0, 3)), np.full((3, 2), np.nan)],
)
def test_nothing_to_see(sound):
    assert spectrogram(sound) == b""


def test_silence_is_drawn():
    assert spectrogram(wav(np.zeros(4000))).startswith(b"\x89PNG")
