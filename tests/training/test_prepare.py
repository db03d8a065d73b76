"""The data of a run are prepared in its folder."""

import dataclasses
import errno
import shutil
import time
from pathlib import Path

import pytest

import kseq.training.fine_tuning as module
from kseq.data import DataError, PairTokenizers, Tokenizer, prepare_pairs
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.runs import RunDirectory
from kseq.training import FineTuning
from kseq.user_error import DiskError
from tests.training.test_fine_tuning import Config, generator, lstm, saved

FILES = ["a.de", "a.en"]
FOLDER = Path("run/prepared")


@dataclasses.dataclass(frozen=True)
class OfFiles(Config):
    train: tuple[str, ...] = ()


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(FILES)


def write(paths, start=0):
    for path in paths:
        lines = (f"line {n} of {path}" for n in range(start, start + 40))
        Path(path).write_text("\n".join(lines))


def started(overwrite=False):
    run = RunDirectory("run")
    run.start(Config(), overwrite=overwrite)
    return run


def prepare(run, train=FILES, vocab_size=280, **options):
    start = FineTuning(run)
    tokenizers = start.pair_tokenizers(vocab_size)
    return start.prepare(prepare_pairs, train, tokenizers=tokenizers, **options)


@pytest.fixture
def trained():
    """A run with a checkpoint, whose data are prepared; its pairs."""
    run = started()
    pairs = prepare(run)
    tokenizer = pairs.tokenizers[0]
    saved(run, generator(tokenizer, lstm(tokenizer)))
    return pairs


def seen():
    return {path: path.stat().st_mtime_ns for path in FOLDER.iterdir()}


def test_a_run_that_resumes_opens_its_folder(trained, monkeypatch):
    assert trained.tokenizers[0].vocab_size == 280
    before = seen()
    monkeypatch.setattr(Tokenizer, "train", pytest.fail)
    for vocab_size in (280, 300):  # it keeps its tokenizers
        pairs = prepare(started(), vocab_size=vocab_size)
        assert pairs.counts == trained.counts
        assert pairs.describe() == trained.describe()
    assert seen() == before


def test_files_that_moved_are_the_same_and_others_are_refused(trained):
    before = seen()
    moved = [Path(path).rename(f"moved.{path}") for path in FILES]
    prepare(started(), moved)
    assert seen() == before
    time.sleep(0.01)
    moved[0].write_text(moved[0].read_text().replace("1", "2"))
    with pytest.raises(DataError, match="prepared from, or has changed since"):
        prepare(started(), moved)
    assert seen() == before


def test_a_run_without_the_folder_prepares_with_its_tokenizers(trained):
    """One of version 0.2, whatever its files were."""
    shutil.rmtree(FOLDER)
    write(FILES, start=1000)
    tokenizers = prepare(started()).tokenizers
    assert tokenizers[0] is tokenizers[1]
    assert tokenizers[0].model == trained.tokenizers[0].model
    before = seen()
    prepare(started())
    assert seen() == before


def test_what_an_earlier_start_has_left_is_used_or_replaced():
    for vocab_size, paths in ((280, FILES), (290, FILES), (290, ["b", "c"])):
        write(set(paths) - set(FILES))
        pairs = prepare(started(), paths, vocab_size)
        before = seen()
        prepare(started(), paths, vocab_size)
        assert seen() == before
        assert pairs.tokenizers[0].vocab_size == vocab_size
        assert f"({paths[0]} and {paths[1]})" in pairs.facts[0]
    (FOLDER / "source.values").unlink()
    assert prepare(started(), paths, vocab_size).counts == pairs.counts


def test_an_overwritten_run_prepares_other_data(trained):
    before = seen()
    prepare(started(overwrite=True))
    assert seen() == before
    pairs = prepare(started(overwrite=True), vocab_size=290)
    assert pairs.tokenizers[0].vocab_size == 290
    assert seen() != before


def test_a_preparation_that_is_interrupted_resumes(monkeypatch):
    finish = PreparedFolder.finish
    for stop in (KeyboardInterrupt(), OSError(errno.ENOSPC, "no room")):

        def interrupted(folder, record, stop=stop):
            raise stop

        monkeypatch.setattr(PreparedFolder, "finish", interrupted)
        with pytest.raises((KeyboardInterrupt, DiskError)):
            prepare(started())
    parts = [path for path in (FOLDER / "parts").iterdir() if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in parts}

    def finished(folder, record):
        for path in before.keys() - {FOLDER / "parts" / "held_out.hashes"}:
            assert path.stat().st_mtime_ns == before[path]
        finish(folder, record)

    monkeypatch.setattr(PreparedFolder, "finish", finished)
    assert sum(prepare(started()).counts) == 36


def test_data_that_cannot_be_used_leave_nothing():
    with pytest.raises(DataError, match="vocab_size=9"):
        prepare(started(), vocab_size=9)
    assert [path.name for path in Path("run").iterdir()] == ["lock"]
    prepare(started())
    Path("a.de").write_text("one line")
    with pytest.raises(DataError, match="same number of lines"):
        prepare(started())
    assert not FOLDER.exists()


def test_a_folder_of_the_user_is_only_opened(trained):
    """Even where it is that of the run."""
    before = seen()
    for overwrite in (False, True):
        pairs = prepare(started(overwrite), [FOLDER])
        assert pairs.counts == trained.counts
    other = Tokenizer.train(["other text"] * 9, 275)
    prepare_pairs(
        "other", FILES, tokenizers=PairTokenizers(kept=(other, other))
    )
    with pytest.raises(DataError, match="not prepared with the tokenizers"):
        prepare(started(), ["other"])
    prepare(started(overwrite=True), ["other"])
    with pytest.raises(DataError, match="above 0 for each corpus"):
        prepare(started(overwrite=True), [FOLDER], weights=(1, 2))
    assert seen() == before


@pytest.mark.parametrize("is_overwritten", [False, True])
def test_a_new_run_deletes_the_data_that_it_does_not_train_from(
    trained, is_overwritten
):
    tokenizer = trained.tokenizers[0]
    prepare_pairs("other", FILES, tokenizers=PairTokenizers(280))
    if not is_overwritten:  # a first start was killed before it was saved
        shutil.rmtree("run/checkpoints")
        for path in Path("run").glob("*.*"):
            path.unlink()
    for train, is_kept in ((FILES, True), ([FOLDER], True), (["other"], False)):
        run = RunDirectory("run")
        config = OfFiles(train=tuple(map(str, train)))
        run.start(config, overwrite=is_overwritten)
        prepare(run, train)
        run.save(generator(tokenizer, lstm(tokenizer)))
        assert FOLDER.exists() == is_kept
        is_overwritten = True
    assert Path("other/prepared.json").is_file()


def test_an_overwritten_run_without_files_deletes_the_data_of_the_old_one(
    trained,
):
    """Of a recipe that prepares nothing, or a built-in corpus."""
    tokenizer = trained.tokenizers[0]
    run = started(overwrite=True)
    FineTuning(run).prepare(lambda *_: None, None)
    assert not FOLDER.exists()
    run.save(generator(tokenizer, lstm(tokenizer)))
    prepare(started())
    run = started(overwrite=True)
    assert FOLDER.exists()
    run.save(generator(tokenizer, lstm(tokenizer)))
    assert not FOLDER.exists()


def test_the_chief_prepares_and_the_others_open(monkeypatch):
    run, said = started(), []

    def is_not_chief(patch, message):
        patch.setattr(module, "is_chief", lambda: False)
        patch.setattr(module, "from_chief", lambda own: message)

    with monkeypatch.context() as patch:
        is_not_chief(patch, "a.de is empty.")
        with pytest.raises(DataError, match=r"^a\.de is empty\.$"):
            prepare(run)
    assert not FOLDER.exists()

    with monkeypatch.context() as patch:
        patch.setattr(module, "is_chief", lambda: True)
        patch.setattr(module, "from_chief", said.append)
        with pytest.raises(DataError, match="vocab_size=9"):
            prepare(run, vocab_size=9)
        expected = prepare(run)
    assert len(said) == 2 and "vocab_size=9" in said[0] and said[1] is None

    is_not_chief(monkeypatch, None)
    monkeypatch.setattr(PreparedFolder, "lock", pytest.fail)
    assert prepare(run).counts == expected.counts
    write(FILES, start=9)
    with pytest.raises(DataError, match="prepared from, or has changed since"):
        prepare(run)
    assert FOLDER.exists()
