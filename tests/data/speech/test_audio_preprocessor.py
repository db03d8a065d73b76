"""WAV files and frames of features to source inputs."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kseq.data import AudioPreprocessor, FramePreprocessor
from kseq.data.speech.wav_samples import wav_samples
from tests.data.wav import tone, wav

GOOD = wav(tone())


@pytest.fixture(scope="module")
def decode():
    return tf.function(
        wav_samples,
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_samples_are_those_that_were_written(decode, channels):
    draw = np.random.default_rng(1)
    written = draw.uniform(-1, 1, (50, channels))
    samples, rates = decode([wav(written, 16_000, channels)])
    assert rates.numpy().tolist() == [16_000]
    np.testing.assert_allclose(samples[0], written.mean(axis=1), atol=2 / 2**15)


def test_chunks_in_any_order_are_found(decode):
    """An odd chunk has a byte of padding after it."""
    chunk = b"LIST" + (3).to_bytes(4, "little") + b"abc\0"
    longer = GOOD[:12] + chunk + GOOD[12:36] + chunk + GOOD[36:]
    samples, _ = decode([longer, GOOD])
    np.testing.assert_array_equal(samples[0], samples[1])
    assert len(samples[0])


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"RIFF",
        GOOD[:30],
        b"RIFX" + GOOD[4:],
        GOOD.replace(b"data", b"dots"),
        GOOD.replace(b"fmt ", b"fmt."),
        wav(tone(), width=1),
        wav(tone(), width=4),
        GOOD[:22] + bytes(2) + GOOD[24:],  # no channels
        GOOD[:24] + bytes(4) + GOOD[28:],  # no samples a second
        GOOD[:16] + b"\xff\xff\xff\xff" + GOOD[20:],  # a chunk without end
    ],
)
def test_what_is_no_wav_file_has_no_samples(decode, broken):
    samples, rates = decode([GOOD, broken, GOOD])
    assert rates.numpy().tolist() == [8000, 0, 8000]
    assert samples.row_lengths().numpy().tolist() == [1600, 0, 1600]


def test_a_file_that_was_cut_has_what_is_there(decode):
    samples, rates = decode([GOOD[:45], GOOD[:1001]])
    assert rates.numpy().tolist() == [8000, 8000]
    assert samples.row_lengths().numpy().tolist() == [0, 478]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 43), st.integers(0, 255)), max_size=8))
def test_any_header_is_decoded_or_not(changes):
    content = bytearray(GOOD[:200])
    for place, value in changes:
        content[place] = value
    samples, rates = _any_header([bytes(content)])
    assert not len(samples[0]) or rates[0] > 0


_any_header = tf.function(
    lambda audio: wav_samples(audio),
    input_signature=[tf.TensorSpec((None,), tf.string)],
    autograph=False,
)


@pytest.mark.parametrize("max_seconds", [0.5, 0.5001, 0.033, 1e-3])
@pytest.mark.parametrize("step", [0.01, 0.0127])
def test_of_a_long_recording_few_frames_are_computed(max_seconds, step):
    """Enough to know that it is too long; a small file may be hours long."""
    preprocessor = AudioPreprocessor(
        8000, num_mels=12, step=step, max_seconds=max_seconds
    )
    most = max_seconds * preprocessor.frames.frames_per_second
    [whole] = AudioPreprocessor(8000, num_mels=12, step=step).features([GOOD])
    [frames] = preprocessor.features([wav(np.tile(tone(), 100))])
    assert most < len(frames) < most + 4
    np.testing.assert_array_equal(frames[: len(whole)], whole[: len(frames)])


@pytest.fixture(scope="module")
def preprocess():
    preprocessor = AudioPreprocessor(8000, num_mels=12, max_seconds=0.5)
    return tf.function(
        lambda audio: preprocessor(audio)._asdict(),
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )


def test_log_mels_by_hand():
    """A frame from its windows: a Fourier transform, triangles, a logarithm."""
    preprocessor = AudioPreprocessor(8000, num_mels=12)
    frames = preprocessor.features([GOOD])[0].numpy()
    assert frames.shape == (18, 12)  # 1 + (1600 - 200) // 80
    samples = np.frombuffer(GOOD[44:], "<i2") / 2**15
    window = np.sin(np.pi * np.arange(200) / 200) ** 2
    for number in (0, 5, 17):
        part = samples[80 * number :][:200] * window
        energies = np.abs(np.fft.rfft(part, 256)) ** 2
        edges = np.linspace(*_mel(np.array([20.0, 4000.0])), 14)
        places = _mel(np.arange(129) * 8000 / 256)[:, None]
        rising = (places - edges[:-2]) / (edges[1:-1] - edges[:-2])
        falling = (edges[2:] - places) / (edges[2:] - edges[1:-1])
        triangles = np.clip(np.minimum(rising, falling), 0, None)
        triangles[0] = 0  # no energy of the mean
        expected = np.log(np.maximum(energies @ triangles, 1e-6))
        np.testing.assert_allclose(frames[number], expected, atol=2e-3)


def _mel(hertz):
    return 1127 * np.log(1 + hertz / 700)


def test_alone_and_in_a_batch(preprocess):
    other = wav(tone(0.3, 700))
    alone = preprocess([GOOD])
    both = preprocess([GOOD, other, b"?"])
    count = alone["inputs"]["source"].shape[1]
    np.testing.assert_allclose(
        alone["inputs"]["source"][0],
        both["inputs"]["source"][0, :count],
        atol=1e-5,
    )
    assert not both["inputs"]["source_mask"][0, count:].numpy().any()


def test_blank_silent_cut_and_short(preprocess):
    other_rate = wav(tone(), sample_rate=16_000)
    long, short = wav(tone(0.8)), wav(tone(0.01))
    silence = wav(np.zeros(4000))
    found = preprocess([GOOD, silence, b"", other_rate, long, short])
    assert found["blank"].numpy().tolist() == [False] + 3 * [True] + 2 * [False]
    assert found["truncated"].numpy().tolist() == 4 * [False] + [True, False]
    frames = tf.math.count_nonzero(found["inputs"]["source_mask"], axis=1)
    assert frames.numpy().tolist() == [18, 0, 0, 0, 48, 1]
    assert np.isfinite(found["inputs"]["source"]).all()


def test_nothing_at_all(preprocess):
    found = preprocess([b"", b""])
    assert found["inputs"]["source"].shape == (2, 1, 12)
    assert found["blank"].numpy().all()


def test_frames_are_normalized_over_the_real_ones():
    draw = np.random.default_rng(1)
    frames = draw.normal(5, 3, (2, 7, 3)).astype("float32")
    frames[1, 4:] = np.nan
    source = FramePreprocessor(3)(frames)
    for row, length in enumerate((7, 4)):
        real = frames[row, :length].astype("float64")
        expected = (real - real.mean(axis=0)) / real.std(axis=0)
        found = source.inputs["source"][row].numpy()
        np.testing.assert_allclose(found[:length], expected, atol=1e-5)
        assert not found[length:].any()
    assert source.inputs["source_mask"].numpy().sum(axis=1).tolist() == [7, 4]
    assert source.lengths.numpy().tolist() == [2, 1]
    names = FramePreprocessor(3).tokens(source.inputs).numpy()
    assert names[1].tolist() == [b"0.00", b"0.01", b"0.02", b"0.03"] + 3 * [b""]


def test_more_frames_than_the_most_are_cut():
    source = FramePreprocessor(2, max_frames=3)(np.ones((1, 5, 2)))
    assert source.inputs["source"].shape == (1, 3, 2)
    assert source.truncated.numpy().tolist() == [True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_rate": 0}, "sample_rate"),
        ({"sample_rate": 10**9}, "sample_rate"),
        ({"sample_rate": 8000.0}, "sample_rate"),
        ({"num_mels": True}, "num_mels"),
        ({"window": 0}, "window"),
        ({"window": 1e9}, "window"),
        ({"step": float("nan")}, "step"),
        ({"max_seconds": "1"}, "max_seconds"),
    ],
)
def test_arguments_of_audio_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        AudioPreprocessor(**{"sample_rate": 8000, **options})


@pytest.mark.parametrize(
    "options",
    [{"num_features": 0}, {"frames_per_second": 0}, {"max_frames": -1}],
)
def test_arguments_of_frames_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        FramePreprocessor(**{"num_features": 3, **options})
