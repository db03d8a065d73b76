"""Data that moved are the same data."""

import dataclasses
import json

import pytest

from kseq.data.files.prepared_folder import PreparedFolder
from kseq.runs import RunDirectory, RunError
from tests.runs.test_run_directory import model


@dataclasses.dataclass(frozen=True)
class Config:
    train: tuple[str, ...] | None = None
    images: str = ""
    from_: str = ""


@pytest.fixture(autouse=True)
def folder(here):
    for name, text in (("a.de", "ein"), ("a.en", "one"), ("b.de", "zwei")):
        (here / name).write_text(text)
    (here / "pictures").mkdir()
    (here / "pictures" / "1.jpg").write_bytes(b"picture")
    return here


def start(**values):
    run = RunDirectory("run")
    run.start(Config(**values))
    run.save_model(model())
    return json.loads(run.config.read_text())


def test_a_path_written_in_another_way_resumes(folder, capsys):
    start(train=("a.de", "a.en"))
    (folder / "link.de").symlink_to("a.de")
    for train in (
        ["./a.de", "a.en"],
        [str(folder / "a.de"), "../" + folder.name + "/a.en"],
        ["link.de", "a.e*"],
    ):
        config = start(train=tuple(train))
        assert config["train"] == train
        assert f"-> {train[0]}" in capsys.readouterr().err


def test_moved_files_and_folders_resume(folder):
    start(train=("*.de", "a.en"), images="pictures")
    (folder / "there").mkdir()
    for name in ("a.de", "b.de", "a.en", "pictures"):
        (folder / name).rename(folder / "there" / name)
    start(train=("there/*.de", "there/a.en"), images="there/pictures")


def test_other_bytes_are_refused(folder):
    start(train=("a.de", "a.en"), images="pictures")
    (folder / "other.de").write_text("eim")
    (folder / "other").mkdir()
    for values, found in (
        ({"train": ("other.de", "a.en")}, r"train.0: a\.de -> other\.de"),
        ({"train": ("a.en", "a.de")}, r"train.0: a\.de -> a\.en"),
        ({"train": ("missing", "a.en")}, r"train.0: a\.de -> missing"),
        ({"images": "other"}, "images: pictures -> other"),
    ):
        same = {"train": ("a.de", "a.en"), "images": "pictures"}
        with pytest.raises(RunError, match=found):
            start(**{**same, **values})


def test_a_table_of_another_kind_is_another_file(folder):
    (folder / "a.tsv").write_text("a\tb")
    (folder / "a.csv").write_text("a\tb")
    start(train=("a.tsv",))
    with pytest.raises(RunError, match=r"a\.tsv -> a\.csv"):
        start(train=("a.csv",))


def test_what_was_overwritten_since_is_compared_as_it_was(folder):
    start(train=("a.de", "a.en"))
    (folder / "copy.de").write_text("ein")
    (folder / "a.de").write_text("zwei")
    start(train=("copy.de", "a.en"))
    with pytest.raises(RunError, match=r"copy\.de -> a\.de"):
        start(train=("a.de", "a.en"))


def test_a_run_without_hashes_compares_the_files_that_are_there(folder):
    start(train=("a.de", "a.en"))
    (folder / "run" / "data.json").unlink()
    start(train=("./a.de", "a.en"))
    with pytest.raises(RunError, match=r"\./a\.de -> b\.de"):
        start(train=("b.de", "a.en"))


def test_the_run_that_it_started_from_by_another_path():
    start(from_="runs/a")
    start(from_="./runs/../runs/a")
    with pytest.raises(RunError, match="runs/b"):
        start(from_="runs/b")


@pytest.mark.parametrize("name", ["a.de", "pictures/2.jpg"])
def test_files_that_have_changed_in_place_are_refused(folder, name):
    start(train=("a.de", "a.en"), images="pictures")
    before = (folder / "run" / "data.json").read_bytes()
    start(train=("a.de", "a.en"), images="pictures")
    (folder / name).write_text("eim")
    with pytest.raises(RunError, match="have changed since it was started: "):
        start(train=("a.de", "a.en"), images="pictures")
    assert (folder / "run" / "data.json").read_bytes() == before


def prepare(text, path="prepared"):
    with PreparedFolder(path, replaces=True).locked() as prepared:
        (prepared.path / "plan.json").write_text("{}")
        (prepared.path / "ids.values").write_text(text)
        prepared.finish({"kind": "pairs"})


def test_a_folder_that_was_prepared_again_is_other_data(folder):
    """Whose files have the same names and sizes."""
    prepare("ab")
    start(train=("prepared",))
    prepare("ab")
    (folder / "prepared").rename(folder / "moved")
    start(train=("moved",))
    (folder / "moved").rename(folder / "prepared")
    start(train=("prepared",))
    prepare("ba")
    with pytest.raises(RunError, match=r"started: train=.*prepared"):
        start(train=("prepared",))


def test_so_is_a_folder_that_is_in_the_run(folder):
    prepare("ab", "run/prepared")
    start(train=("run/prepared",))
    prepare("ab", "run/prepared")
    start(train=("run/prepared",))
    prepare("ba", "run/prepared")
    with pytest.raises(RunError, match=r"started: train=.*run/prepared"):
        start(train=("run/prepared",))


def test_data_that_are_prepared_in_the_run_are_compared_there(folder):
    start(train=("a.de", "a.en"))
    (folder / "run" / "prepared").mkdir()
    (folder / "run" / "prepared" / "prepared.json").write_text("{}")
    (folder / "a.de").write_text("eim")
    start(train=("a.de", "a.en"))
