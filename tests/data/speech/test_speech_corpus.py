"""Transcripts and their recordings or features, read and batched."""

import os
from pathlib import Path

import numpy as np
import pytest

from kseq.data import (
    AudioPreprocessor,
    DataError,
    FramePreprocessor,
    Tokenizer,
    evaluation_batches,
    prepare_speech,
    read_frames,
    read_speech_corpus,
    read_transcripts,
    tokenize_pairs,
    training_batches,
)
from kseq.data.speech import recordings
from kseq.data.speech.recordings import read_recording
from kseq.user_error import UserError
from tests.data.tar import tar
from tests.data.wav import tone, wav

NAMES = [f"{i}.wav" for i in range(12)]
TEXTS = ["yes", "no no", "go home"] * 4


@pytest.fixture(autouse=True)
def folder(here):
    """Recordings from 0.1 to 0.65 seconds, and a table of their transcripts."""
    for number, name in enumerate(NAMES):
        (here / name).write_bytes(wav(tone(0.1 + number / 20)))
    write_table()
    return here


def write_table(names=NAMES, texts=TEXTS, path="table.tsv", encoding="utf-8"):
    rows = map("\t".join, zip(names, texts, strict=True))
    with open(path, "w", encoding=encoding) as file:
        file.write("\n".join(rows))
    return path


def write_frames(**changes):
    lengths = np.arange(5, 17)
    draw = np.random.default_rng(1)
    arrays = {
        "features": draw.normal(size=(lengths.sum(), 3)).astype("float16"),
        "lengths": lengths,
        "names": np.array(NAMES),
        **changes,
    }
    np.savez("a.npz", **{k: v for k, v in arrays.items() if v is not None})
    return "a.npz"


@pytest.fixture
def tokenizer():
    return Tokenizer.train(TEXTS, 100, "char")


def test_batches_have_the_frames_of_their_recordings(tokenizer):
    """Whatever is shuffled: lengths tell which recording it is."""
    corpus = read_speech_corpus("table.tsv", features=write_frames())
    stored = corpus.features
    preprocessor = stored.preprocessor
    by_length = {len(stored[i]): i for i in range(12)}
    batches = training_batches(
        tokenize_pairs(corpus.train.pairs(), stored, tokenizer),
        batch_tokens=40,
        max_length=20,
        seed=1,
    )
    seen = set()
    for inputs, labels, _ in batches.take(12):
        source, mask = inputs["source"].numpy(), inputs["source_mask"].numpy()
        assert source.shape[:2] == mask.shape
        assert mask.size <= 40
        for frames, real, ids in zip(source, mask, labels, strict=True):
            number = by_length[real.sum()]
            alone = preprocessor([stored[number]]).inputs["source"][0]
            np.testing.assert_allclose(frames[real], alone, atol=1e-5)
            [text] = tokenizer.detokenize([ids]).numpy()
            assert text.decode() == TEXTS[number]
            seen.add(number)
    assert seen == {*corpus.train.numbers}
    judged = evaluation_batches(corpus.validation.pairs(), stored, tokenizer)
    assert sum(len(labels) for _, labels, _ in judged) == 1


def test_few_shapes_have_the_width_of_the_longest(tokenizer):
    corpus = read_speech_corpus("table.tsv", features=write_frames())
    batches = training_batches(
        tokenize_pairs(corpus.train.pairs(), corpus.features, tokenizer),
        batch_tokens=40,
        max_length=20,
        seed=1,
        max_shapes=2,
    )
    lengths = {len(corpus.features[n]) for n in corpus.train.numbers}
    found, real = set(), set()
    for inputs, labels, _ in batches.take(12):
        found.add((*inputs["source"].shape, *labels.shape))
        real |= {*inputs["source_mask"].numpy().sum(axis=1).tolist()}
    assert real == lengths
    assert found == {
        (*inputs["source"].shape, *labels.shape)
        for inputs, labels, _ in batches.shapes
    }
    assert len(found) == 2
    assert max(lengths) in {width for _, width, *_ in found}


def test_recordings_are_in_the_folder_of_their_table(folder):
    """Also if those of another table have the same names."""
    for place, seconds in (("a", 0.2), ("b", 0.4)):
        (folder / place).mkdir()
        for name in NAMES[:3]:
            (folder / place / name).write_bytes(wav(tone(seconds)))
        write_table(NAMES[:3], TEXTS[:3], f"{place}/table.tsv")
    os.symlink(folder / "a", folder / "far")
    for train in ("a/table.tsv", "far/table.tsv"):
        corpus = read_speech_corpus(train, "b/table.tsv", num_mels=8)
        assert not corpus.problems
        for found, seconds in ((corpus.train, 0.2), (corpus.validation, 0.4)):
            assert found.audio(found.names[0]) == wav(tone(seconds))
            lengths = [len(corpus.features[n]) for n in found.numbers]
            assert len(lengths) == 3
            assert {*lengths} == {round(100 * seconds) - 2}
    alone = read_transcripts("b/table.tsv")
    assert alone.audio("0.wav") == wav(tone(0.4))
    write_table(["../a/0.wav", "9.wav"], TEXTS[:2], "b/table.tsv")
    with pytest.raises(DataError, match="recording in b; found '9"):
        read_speech_corpus("a/table.tsv", "b/table.tsv")
    write_table(["../a/0.wav", "1.wav"], TEXTS[:2], "b/table.tsv")
    corpus = read_speech_corpus("a/table.tsv", "b/table.tsv", num_mels=8)
    assert "1 of 2 validation" in corpus.problems[0]


def test_numbers_at_the_end_of_names_are_part_of_them(folder):
    names = [f"utt#{number}" for number in range(12)]
    write_table(names)
    corpus = read_speech_corpus(
        "table.tsv", features=write_frames(names=np.array(names))
    )
    found = [*corpus.train.names, *corpus.validation.names]
    assert sorted(found) == sorted(names)
    for name in names:
        (folder / name).write_bytes(wav(tone(0.2)))
    assert read_transcripts("table.tsv").names == names


def test_recordings_become_the_frames_that_are_served():
    corpus = read_speech_corpus("table.tsv", num_mels=8)
    [name, *_] = corpus.train.names
    served = corpus.preprocessor([corpus.train.audio(name)]).inputs["source"]
    stored = corpus.features[corpus.train.numbers[0]]
    trained = corpus.features.preprocessor([stored]).inputs["source"]
    assert served.shape == trained.shape
    np.testing.assert_allclose(served, trained, atol=0.005)
    assert corpus.describe() == [
        "Training recordings: 11, 3.9 seconds (table.tsv)",
        "Validation recordings: 1, 0.3 seconds (held out of training)",
    ]


def test_features_are_traced_once_for_all_corpora(monkeypatch):
    traces, features = [], AudioPreprocessor.features
    monkeypatch.setattr(
        AudioPreprocessor,
        "features",
        lambda self, audio: traces.append(self) or features(self, audio),
    )
    for _ in range(2):
        read_speech_corpus("table.tsv", num_mels=7)
    assert len(traces) == 1


def test_a_second_table_and_another_folder(folder):
    (folder / "more").mkdir()
    (folder / "0.wav").rename(folder / "more" / "0.wav")
    (folder / "1.wav").rename(folder / "more" / "1.wav")
    (folder / "2.wav").rename(folder / "more" / "2.wav")
    train = write_table(NAMES[:2], TEXTS[:2], "train.csv")
    with open(train, "w") as file:
        file.write("path,sentence\n0.wav,yes\n1.wav,no\n")
    with open("dev.jsonl", "w") as file:
        file.write('{"audio": "1.wav", "text": "no"}\n')
        file.write('{"audio": "2.wav", "text": "go"}\n')
    corpus = read_speech_corpus(train, "dev.jsonl", audio="more")
    assert corpus.train.names == ["0.wav", "1.wav"]
    assert corpus.validation.texts == ["no", "go"]
    [problem] = corpus.problems
    assert "1 of 2 validation recordings are also in training" in problem


def test_a_recorder_that_was_cut_off(folder):
    """Its header says that there are no samples; and there may be none."""
    whole = (folder / "0.wav").read_bytes()
    (folder / "0.wav").write_bytes(whole[:40] + bytes(4) + whole[44:])
    (folder / "1.wav").write_bytes(whole[:40] + bytes(4))
    corpus = read_speech_corpus("table.tsv")
    names = corpus.train.names + corpus.validation.names
    assert sorted(names) == sorted({*NAMES} - {"1.wav"})
    problem, note = corpus.problems
    assert "they are without samples, such as '1.wav' in line 2" in problem
    assert note.startswith("0.wav is unfinished: its header does not say")


def test_truncated_recordings_are_named(folder):
    """Downloads that were cut: their transcripts are longer than they are."""
    for name in NAMES[:7]:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-101])
    size = len(content) - 44
    for corpus in (
        read_speech_corpus("table.tsv"),
        prepare_speech("prepared", "table.tsv"),
    ):
        *notes, more = corpus.problems
        assert len(notes) == 5
        assert more == "2 more recordings are unfinished or truncated."
        assert any(
            line.startswith(f"{name} is truncated: it has ")
            for line in notes
            for name in NAMES[:7]
        )
    notes = []
    read_recording("6.wav", notes=notes)
    assert notes[0].startswith(
        f"6.wav is truncated: it has {size - 101} of {size} bytes of samples."
    )


def test_recordings_of_any_kind_are_resampled(folder):
    """On request; the seconds stay the same."""
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    corpus = read_speech_corpus("table.tsv")
    soundfile.write("0.flac", tone(0.1, 440, 48_000), 48_000)
    (folder / "0.flac").rename("0.wav")
    with pytest.raises(DataError, match=r"expected 48000.*--resample"):
        read_speech_corpus("table.tsv")
    resampled = read_speech_corpus("table.tsv", resample=8000)
    assert resampled.facts == corpus.facts
    for number, name in enumerate(corpus.features.names):
        assert resampled.features.names[number] == name
        one, other = resampled.features[number], corpus.features[number]
        # The tone, and not the noise of rounding around it.
        assert np.argmax(one, axis=1).tolist() == np.argmax(other, 1).tolist()
    with pytest.raises(DataError, match="resample is for recordings"):
        read_speech_corpus("table.tsv", features="a.npz", resample=8000)


def write_tars():
    """Two archives of six recordings each, and their transcripts."""
    for number in range(2):
        files = {}
        for name, text in [*zip(NAMES, TEXTS, strict=True)][number::2]:
            files[name] = Path(name).read_bytes()
            files[name.replace("wav", "txt")] = text.encode()
        Path(f"{number}.tar").write_bytes(tar(files))
    return "*.tar"


def test_archives_have_recordings_and_transcripts():
    corpus = read_speech_corpus("table.tsv")
    found = read_speech_corpus(write_tars())
    assert not found.problems
    size = "Training recordings: 11, "
    assert found.facts[0].startswith(size)
    frames = {
        text_and_length(corpus, split, place)
        for split in ("train", "validation")
        for place in range(len(getattr(corpus, split).names))
    }
    assert len(frames) == 12
    assert frames == {
        text_and_length(found, split, place)
        for split in ("train", "validation")
        for place in range(len(getattr(found, split).names))
    }
    [audio] = found.validation.raw("audio")
    assert audio in [Path(name).read_bytes() for name in NAMES]


def text_and_length(corpus, split, place):
    chosen = getattr(corpus, split)
    features = corpus.features[chosen.numbers[place]]
    return chosen.texts[place], len(features), features.tobytes()


def test_archives_of_training_and_validation():
    """The same names are other recordings, and a copy has the same."""
    Path("a.tar").write_bytes(tar({"0.wav": wav(tone()), "0.txt": b"yes"}))
    Path("b.tar").write_bytes(tar({"0.wav": wav(tone(0.3)), "0.txt": b"no"}))
    corpus = read_speech_corpus("a.tar", "b.tar")
    assert not corpus.problems
    assert corpus.validation.numbers != corpus.train.numbers
    assert corpus.validation.raw("audio") == [wav(tone(0.3))]
    Path("c.tar").write_bytes(Path("a.tar").read_bytes())
    [problem] = read_speech_corpus("a.tar", "c.tar").problems
    assert "1 of 1 validation recordings are also in training" in problem
    found = read_transcripts("b.tar", sample_rate=8000)
    assert found.texts == ["no"]


def test_what_is_wrong_in_an_archive():
    files = {"0.wav": wav(np.zeros(800)), "0.txt": b"yes"}
    Path("a.tar").write_bytes(
        tar(files | {"1.wav": wav(tone()), "1.cls": b"3"})
    )
    corpus = read_speech_corpus("a.tar", "a.tar")
    assert corpus.train.labels == ["3"]
    assert corpus.problems[0].startswith("a.tar: 1 recordings are left out: ")
    assert corpus.problems[0].endswith("/0.wav' in a.tar.")
    Path("a.tar").write_bytes(tar(files | {"0.wav": b"RIFF"}))
    with pytest.raises(DataError, match=r"^a\.tar: 0\.wav is not a readable"):
        read_speech_corpus("a.tar")
    for option in ({"audio": "."}, {"features": "a.npz"}, {"columns": "ab"}):
        name = next(iter(option))
        with pytest.raises(DataError, match=rf"Leave out {name}\."):
            read_speech_corpus("a.tar", **option)
    with pytest.raises(DataError, match="others are tables"):
        read_speech_corpus("table.tsv", "a.tar")


def test_silent_long_and_blank_ones_are_left_out(folder):
    (folder / "0.wav").write_bytes(wav(np.zeros(800)))
    write_table(texts=["yes", "", *TEXTS[2:]])
    corpus = read_speech_corpus("table.tsv", max_seconds=0.5)
    assert len(corpus.train.names + corpus.validation.names) == 7
    shown = "\n".join(corpus.problems)
    assert "1 transcripts are left out: they are blank" in shown
    assert "they are silent, such as '0.wav' in line 1" in shown
    assert "3 recordings are left out: they are too long" in shown


@pytest.mark.parametrize("read", [read_speech_corpus, prepare_speech])
def test_recordings_too_long_for_the_memory_are_left_out(
    folder, monkeypatch, read
):
    """An hour of silence takes a few kB of FLAC."""
    soundfile = pytest.importorskip("soundfile")
    monkeypatch.setattr(recordings, "_BLOCK", 1000)
    monkeypatch.setattr(recordings, "LARGEST_FILE", 60_000)
    sound = [*tone(0.1), *np.zeros(80_000)]
    soundfile.write("1.wav", sound, 8000, "PCM_16", format="FLAC")
    prepared = ("out",) if read == prepare_speech else ()
    options = {} if read == read_speech_corpus else {"processes": 1}
    corpus = read(*prepared, "table.tsv", max_seconds=0.63, **options)
    assert "1 recordings are left out: they are too long, such as '1.wav'" in (
        "\n".join(corpus.problems)
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "3.wav is not a readable"),
        (b"RIFF", "3.wav is not a readable"),
        (b"RIFF", "table.tsv:4: 3.wav is not a readable 16-bit PCM WAV file"),
        (
            wav(tone(), 16_000),
            "16000 samples per second; expected 8000",
        ),
        (None, "table.tsv:4: expected the name of a recording"),
    ],
)
def test_a_broken_recording_is_one_message(folder, content, message):
    (folder / "3.wav").unlink()
    if content is not None:
        (folder / "3.wav").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_speech_corpus("table.tsv")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["0.wav", "0.wav"], "'0.wav' has 2 transcripts"),
        (["0.wav", "none.wav"], "table.tsv:2: expected the name"),
        (["0.wav"], "only one"),
    ],
)
def test_a_wrong_table_is_one_message(names, message):
    write_table(names, TEXTS[: len(names)])
    with pytest.raises(DataError, match=message):
        read_speech_corpus("table.tsv")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": None}, "found no lengths"),
        ({"names": None}, "found no names"),
        ({"lengths": np.arange(12)}, "positive numbers"),
        ({"lengths": np.ones(12, int)}, "whose sum"),
        ({"lengths": np.ones((12, 1), int)}, "`lengths`"),
        ({"lengths": np.ones(12)}, "`lengths`"),
        ({"names": np.array(["a"] * 12)}, "'a' is the name of two recordings"),
        ({"names": np.array(NAMES[:3])}, "`names`"),
        ({"features": np.ones(126)}, "of the shape"),
        ({"features": np.full((126, 3), "a")}, "numbers"),
        ({"features": np.full((126, 3), np.nan)}, "recording 1, '0.wav'"),
        ({"features": np.full((126, 3), 1e300)}, "recording 1, '0.wav'"),
        (
            {"lengths": np.array([2**64 - 1, 28, *[10] * 9, 9], "uint64")},
            "positive numbers",
        ),
    ],
)
def test_broken_features_are_one_message(changes, message):
    with pytest.raises(DataError, match=message):
        read_frames(write_frames(**changes))


@pytest.mark.parametrize("dtype", [">f4", ">f2", ">i2", "f8"])
def test_features_of_any_type_are_trained_on(tokenizer, dtype):
    """In a prepared folder, too, whose arrays are mapped into memory."""
    draw = np.random.default_rng(1)
    lengths = np.arange(5, 17).astype(">i4")
    features = draw.normal(size=(126, 3), scale=9).astype(dtype)
    path = write_frames(features=features, lengths=lengths)
    for corpus in (
        read_speech_corpus("table.tsv", features=path),
        prepare_speech("prepared", "table.tsv", features=path),
    ):
        stored = corpus.features
        pairs = tokenize_pairs(corpus.train.pairs(), stored, tokenizer)
        batches = training_batches(
            pairs, batch_tokens=40, max_length=20, seed=1
        )
        for inputs, *_ in batches.take(1):
            assert inputs["source"].dtype == "float32"
        np.testing.assert_array_equal(stored[0], features[:5].astype("f4"))


def test_features_must_fit_the_model():
    with pytest.raises(DataError, match="expects 13 features a frame; found 3"):
        read_frames(write_frames(), FramePreprocessor(13))


@pytest.mark.parametrize(
    "options", [{"num_mels": 300}, {"max_seconds": 1e9}, {"max_seconds": 1e-9}]
)
def test_absurd_features_are_an_error_of_the_user(options):
    with pytest.raises(UserError, match=next(iter(options))):
        read_speech_corpus("table.tsv", **options)


@pytest.mark.parametrize("rate", [1, 400_000])
def test_rates_without_features_are_named(folder, rate):
    expected = f"{rate} samples per second; expected 100 to 192000"
    for name in NAMES:
        (folder / name).write_bytes(wav(tone(0.1), rate))
    with pytest.raises(DataError, match=f"0.wav has {expected}"):
        read_speech_corpus("table.tsv")
    with pytest.raises(DataError, match=r"resample takes .* 100 to 192000"):
        read_speech_corpus("table.tsv", resample=rate)


def test_why_no_recording_can_be_used():
    with pytest.raises(DataError, match=r"be used\. .*they are too long"):
        read_speech_corpus("table.tsv", max_seconds=0.02)


def test_an_empty_path_is_no_missing_one():
    with pytest.raises(DataError, match="an empty one"):
        read_speech_corpus("table.tsv", "")


def test_options_that_exclude_each_other():
    with pytest.raises(DataError, match="not both"):
        read_speech_corpus("table.tsv", features="a.npz", audio=".")
    with pytest.raises(DataError, match="audio needs train"):
        read_speech_corpus(audio=".")


def test_what_is_left_out_of_an_evaluation_is_said(caplog):
    write_table(texts=["", "gr\xfcn", *TEXTS[2:]], encoding="latin-1")
    found = read_transcripts("table.tsv")
    assert len(found.texts) == 11
    assert "1 transcripts are left out: they are blank" in caplog.text
    assert "1 line is not valid UTF-8" in caplog.text


def test_transcripts_of_a_file_to_evaluate():
    found = read_transcripts("table.tsv", sample_rate=8000)
    assert found.texts == TEXTS
    assert found.raw("audio")[0] == wav(tone(0.1))
    with pytest.raises(DataError, match="expected 16000"):
        read_transcripts("table.tsv", sample_rate=16_000).raw("audio")
    stored = read_frames(write_frames())
    assert len(read_transcripts("table.tsv", stored=stored).raw("frames")) == 12
