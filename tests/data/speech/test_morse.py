import numpy as np

from kseq.data.speech.morse import SAMPLE_RATE, SIZES, morse, morse_transcripts

SIGNS = {"e": [1], "t": [3], "s": [1, 1, 1], "q": [3, 3, 1, 3]}


def test_the_same_seed_draws_the_same():
    one, two = (morse("train", size=5, seed=3) for _ in range(2))
    for a, b in zip(one.samples, two.samples, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one.texts, one.spans) == (two.texts, two.spans)
    assert morse("train", size=5, seed=4).texts != one.texts


def test_splits_have_different_texts():
    found = {split: morse(split, size=50).texts for split in SIZES}
    assert all(len({*texts}) == 50 for texts in found.values())
    assert not {*found["train"]} & {*found["validation"]}
    assert not {*found["test"]} & {*found["validation"]}


def test_the_sound_of_a_letter_is_its_code():
    """Read from the envelope of the quietest noise, in units of a dot."""
    found = morse("train", size=150)
    seen = set()
    for text, samples, spans in zip(
        found.texts, found.samples, found.spans, strict=True
    ):
        assert len(spans) == len(text)
        noise = np.abs(samples[: int(0.04 * SAMPLE_RATE)]).max()
        if noise > 0.1 * np.abs(samples).max():
            continue
        for letter, (start, end) in zip(text, spans, strict=True):
            if letter not in SIGNS:
                continue
            part = samples[int(start * SAMPLE_RATE) : int(end * SAMPLE_RATE)]
            assert _tones(part) == SIGNS[letter], text
            seen.add(letter)
    assert len(seen) >= 3


def _tones(samples):
    """Lengths of the tones in a part, in dots."""
    window = np.ones(20) / 20
    is_on = np.convolve(np.abs(samples / samples.std()), window, "same") > 0.4
    is_on = np.r_[False, is_on, False].astype(int)
    starts, ends = (np.flatnonzero(np.diff(is_on) == d) for d in (1, -1))
    lengths = ends - starts
    lengths = lengths[lengths > 40]
    dot = lengths.min() if lengths.max() > 1.8 * lengths.min() else None
    if dot is None:  # all alike: by how long a dot can be
        dot = lengths.min() if lengths.min() < 0.075 * SAMPLE_RATE else 240
        return [1 if dot == lengths.min() else 3] * len(lengths)
    return [3 if length > 1.8 * dot else 1 for length in lengths]


def test_transcripts_have_their_own_features(monkeypatch):
    sizes = {"train": 6, "validation": 3, "test": 2}
    monkeypatch.setattr("kseq.data.speech.morse.SIZES", sizes)
    monkeypatch.setattr(
        "kseq.data.speech.morse.morse",
        lambda split, size, words: morse(split, size=sizes[split]),
    )
    found = morse_transcripts(num_mels=12, max_seconds=30.0)
    for split, size in sizes.items():
        part = found[split]
        assert part.texts == morse(split, size=size).texts
        for name, number in zip(part.names, part.numbers, strict=True):
            frames = found["preprocessor"].features([part.audio(name)])[0]
            np.testing.assert_allclose(
                part.features[number],
                frames - frames.numpy().mean(axis=0),
                atol=0.01,
            )
