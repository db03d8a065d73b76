"""Features of recordings, computed once."""

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from kseq.data import (
    DataError,
    Tokenizer,
    labelled_batches,
    prepare_speech,
    read_speech_corpus,
    tokenize_pairs,
    training_batches,
)
from kseq.data.files import feature_parts
from kseq.user_error import DiskError
from tests.data.tar import tar
from tests.data.wav import tone, wav

NAMES = [f"{i}.wav" for i in range(12)]
TEXTS = ["yes", "no no", "go home"] * 4


@pytest.fixture(autouse=True)
def folder(here):
    """Recordings from 0.1 to 0.65 seconds, one of them silent."""
    for number, name in enumerate(NAMES):
        Path(name).write_bytes(wav(tone(0.1 + number / 20)))
    Path("3.wav").write_bytes(wav(np.zeros(4000)))
    rows = map("\t".join, zip(NAMES, TEXTS, strict=True))
    Path("a.tsv").write_text("\n".join(rows))


def files(folder):
    return {
        path.name: path.read_bytes()
        for path in Path(folder).iterdir()
        if path.suffix != ".json" and path.is_file()
    }


def batches_of(corpus):
    both = corpus.features, Tokenizer.train(corpus.train.lines(), 100, "char")
    pairs = tokenize_pairs(corpus.train.pairs(), *both)
    batches = training_batches(pairs, batch_tokens=99, max_length=20, seed=1)
    labels = corpus.train.labels
    yield from batches.take(8).as_numpy_iterator()
    yield from (
        labelled_batches(
            *(corpus.features, corpus.train.numbers, labels),
            tuple(sorted({*labels})),
            batch_tokens=99,
            seed=1,
        )
        .take(8)
        .as_numpy_iterator()
    )


def flat(batch):
    inputs, *others = batch
    return [*(inputs[name] for name in sorted(inputs)), *others]


def test_a_folder_trains_as_the_files_do():
    corpus = read_speech_corpus("a.tsv", max_seconds=0.5)
    prepared = prepare_speech("out", "a.tsv", max_seconds=0.5)
    opened = read_speech_corpus("out", max_seconds=0.5)
    assert isinstance(opened.features.features.values, np.memmap)
    assert opened.describe() == prepared.describe() == corpus.describe()
    assert [*opened.train.names] == corpus.train.names
    audio = corpus.validation.raw("audio")
    frames = corpus.validation.raw("frames")
    for name in NAMES:
        Path(name).unlink()
    assert [*opened.test.texts] == corpus.test.texts
    assert opened.test.raw("audio") == audio
    for one, other in zip(frames, opened.test.raw("frames"), strict=True):
        np.testing.assert_array_equal(one, other)
    config = corpus.preprocessor.get_config()
    assert opened.preprocessor.get_config() == config
    for one, other in zip(batches_of(corpus), batches_of(opened), strict=True):
        for array, same in zip(flat(one), flat(other), strict=True):
            np.testing.assert_array_equal(array, same)


def write_tars():
    """Two archives, which number their members alike."""
    both = [*zip(NAMES, TEXTS, strict=True)]
    for number, half in enumerate((both[:6], both[6:])):
        files = {}
        for place, (name, text) in enumerate(half):
            files[f"{place}.wav"] = Path(name).read_bytes()
            files[f"{place}.json"] = json.dumps({"text": text}).encode()
        Path(f"{number}.tar").write_bytes(tar(files))
    return "*.tar"


def test_archives_are_prepared():
    corpus = read_speech_corpus(write_tars())
    prepared = prepare_speech("out", "*.tar", part_size=25000)
    audio = corpus.validation.raw("audio")
    for path in Path().glob("*.tar"):
        path.unlink()
    opened = read_speech_corpus("out")
    assert opened.describe() == prepared.describe() == corpus.describe()
    assert opened.test.raw("audio") == audio
    # All that batches are made of; the test above compares batches.
    for split in ("train", "validation", "test"):
        one, other = getattr(corpus, split), getattr(opened, split)
        assert [*one.texts] == one.labels == [*other.texts] == other.labels
        assert len(one.numbers) == len(other.numbers) > 0
        for number, same in zip(one.numbers, other.numbers, strict=True):
            np.testing.assert_array_equal(
                corpus.features[number], opened.features[same]
            )


def test_what_is_finished_stays(monkeypatch):
    """A process that ends at any part resumes: the same bytes."""
    prepare_speech("whole", "a.tsv")
    prepare_speech("parts", "a.tsv", part_size=25000)
    assert files("parts") == files("whole")

    write, written = feature_parts.replace_file, []

    def fails(path, content):
        written.append(Path(path).name)
        if len(written) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content)

    monkeypatch.setattr(feature_parts, "replace_file", fails)
    with pytest.raises(DiskError, match="the same command resumes"):
        prepare_speech("out", "a.tsv", part_size=25000)
    with pytest.raises(DataError, match="not complete: start the same"):
        read_speech_corpus("out")
    prepare_speech("out", "a.tsv")  # the size of the parts is kept
    assert files("out") == files("whole")
    assert written.count("000000.json") == 1
    assert written.count("000001.values") == 2
    assert not Path("out/parts").exists()


@pytest.mark.slow
def test_the_bytes_are_those_of_any_number_of_processes():
    prepare_speech("one", "a.tsv", part_size=25000)
    prepare_speech("two", "a.tsv", part_size=25000, processes=2)
    assert files("one") == files("two")
    prepare_speech("three", write_tars(), part_size=25000)
    prepare_speech("four", "*.tar", part_size=25000, processes=2)
    assert files("three") == files("four")


def test_other_files_and_options_are_refused():
    prepare_speech("out", "a.tsv")
    prepare_speech("out", "a.tsv")
    with pytest.raises(DataError, match="num_mels was 40, now 20"):
        prepare_speech("out", "a.tsv", num_mels=20)
    with pytest.raises(DataError, match="--num-mels 40; expected 20"):
        read_speech_corpus("out", num_mels=20)
    with pytest.raises(DataError, match="resample is part of a prepared"):
        read_speech_corpus("out", resample=8000)
    with pytest.raises(DataError, match=r"no recording of .* can be used"):
        read_speech_corpus("out", max_seconds=0.03)
    left = read_speech_corpus("out", max_seconds=0.5)
    assert "recordings of train are left out: they are too long" in str(left)
    assert len(left.train.names) < len(read_speech_corpus("out").train.names)
    Path("5.wav").write_bytes(wav(tone(0.2)))
    with pytest.raises(DataError, match="prepared from different files"):
        prepare_speech("out", "a.tsv")
    Path("5.wav").write_bytes(b"RIFF?")
    shutil.rmtree("out")
    with pytest.raises(DataError, match=r"a\.tsv:6: 5\.wav is not a readable"):
        prepare_speech("out", "a.tsv")


def test_ready_features_are_mapped():
    lengths = np.arange(5, 17)
    features = np.random.default_rng(1).normal(size=(lengths.sum(), 3))
    arrays = {"lengths": lengths, "names": np.array(NAMES)}
    np.savez("a.npz", features=features.astype("float16"), **arrays)
    corpus = read_speech_corpus("a.tsv", features="a.npz")
    prepare_speech("out", "a.tsv", features="a.npz")
    opened = read_speech_corpus("out")
    assert opened.describe() == corpus.describe()
    assert isinstance(opened.features.features.values, np.memmap)
    for number in range(len(NAMES)):
        one, other = corpus.features[number], opened.features[number]
        np.testing.assert_array_equal(one, other)
    record = json.loads(Path("out/prepared.json").read_text())
    record["arrays"]["features"]["shape"].append(1)
    Path("out/prepared.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="out is broken: its files do not"):
        read_speech_corpus("out")


def test_validation_of_its_own():
    rows = Path("a.tsv").read_text().splitlines()
    Path("b.tsv").write_text("\n".join(rows[:2]))
    corpus = read_speech_corpus("a.tsv", "b.tsv")
    prepared = prepare_speech("out", "a.tsv", "b.tsv")
    assert prepared.describe() == corpus.describe()
    assert [*prepared.test.names] == NAMES[:2]
    assert [*prepared.test.numbers] == [0, 1]


def test_validation_in_a_folder_of_its_own():
    Path("b").mkdir()
    for name in NAMES[:3]:
        Path("b", name).write_bytes(wav(tone(0.3, hertz=700)))
    rows = map("\t".join, zip(NAMES[:3], TEXTS[:3], strict=True))
    Path("b/b.tsv").write_text("\n".join(rows))
    corpus = read_speech_corpus("a.tsv", "b/b.tsv")
    prepared = prepare_speech("out", "a.tsv", "b/b.tsv", part_size=25000)
    assert prepared.describe() == corpus.describe()
    audio = prepared.validation.raw("audio")
    assert audio == [wav(tone(0.3, hertz=700))] * 3
    for split in ("train", "validation"):
        both = (getattr(each, split) for each in (corpus, prepared))
        for one, other in zip(*(x.raw("frames") for x in both), strict=True):
            np.testing.assert_array_equal(one, other)
