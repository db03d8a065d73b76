import contextlib
import errno
import shutil
from pathlib import Path

import pytest

from kseq.commands import check
from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder
from kseq.files.atomic_write import replace_file


class Killed(BaseException):
    """What ends a process, whatever it was about to do."""


@pytest.fixture
def folder(tmp_path):
    folder = PreparedFolder(tmp_path)
    folder.finish({"kind": "pairs", "arrays": {"ids": {"dtype": "uint16"}}})
    return folder


@pytest.mark.parametrize("error", [KeyError("a"), TypeError(), ValueError()])
def test_a_record_that_is_broken(folder, error):
    with (
        pytest.raises(DataError, match=r"is broken: prepared\.json\.$"),
        folder.opened("pairs"),
    ):
        raise error


@pytest.mark.parametrize(
    "array",
    [
        {"dtype": "uint16"},
        *({"dtype": "uint16", "shape": shape} for shape in ([], [-1], [1e9])),
        *({"dtype": dtype, "shape": [1]} for dtype in ("S2", ">u2", "O", 2)),
    ],
)
def test_an_array_without_a_type_or_a_shape(folder, array):
    with (
        pytest.raises(DataError, match=r"is broken: prepared\.json\.$"),
        folder.opened("pairs") as record,
    ):
        record["arrays"]["ids"] = array
        folder.array(record, "ids")


@pytest.mark.parametrize("name", ["../a", "/a", "..", "\\u0000"])
def test_nothing_outside_is_read(folder, name):
    """Of a record that somebody else has written."""
    content = (folder.path / "prepared.json").read_text()
    (folder.path / "a").touch()
    content = content.replace('"files": {', f'"files": {{"{name}": {{}}')
    (folder.path / "prepared.json").write_text(content)
    with pytest.raises(DataError, match=r"prepared\.json is broken\.$"):
        folder.verify()


def test_kseq_check_of_a_broken_record(folder):
    with pytest.raises(DataError, match=r"is broken: prepared\.json\.$"):
        check._check_prepared(folder)


def test_a_file_that_is_broken_keeps_its_message(folder):
    with (
        pytest.raises(DataError, match=r"^ids is broken\.$"),
        folder.opened("pairs"),
    ):
        raise DataError("ids is broken.")


def test_a_full_disk_leaves_no_half_file(tmp_path, monkeypatch):
    def full(path, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "part", b"content")
    assert not list(tmp_path.iterdir())


def test_another_kind(folder):
    with (
        pytest.raises(DataError, match="expected 'text'"),
        folder.opened("text"),
    ):
        pass


def prepare(path, size, replaces=False):
    """Prepares two files, with a part that only resuming needs."""
    with PreparedFolder(path, replaces).locked() as folder:
        options = {"size": size, "part_size": 1}
        plan = folder.follow("pairs", options, {})
        if not folder.is_complete:
            (folder.parts / "part").touch()
            for name in ("values", "offsets"):
                (folder.path / name).write_text(f"{size} {name}")
            folder.finish({"kind": "pairs", "plan": plan})


@pytest.mark.parametrize("step", range(22))
def test_killed_while_it_is_replaced(tmp_path, monkeypatch, step):
    """Data are the old ones or the new ones, or nobody reads them."""
    prepare(tmp_path, 1)
    steps = 0

    def killed(function):
        def call(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps > step:
                raise Killed
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("touch", "unlink", "replace", "mkdir"):
            patch.setattr(Path, name, killed(getattr(Path, name)))
        patch.setattr(shutil, "rmtree", killed(shutil.rmtree))
        with contextlib.suppress(Killed):
            prepare(tmp_path, 2, replaces=True)
    for path in (tmp_path, tmp_path / ".new"):
        PreparedFolder(path).unlock()
    folder = PreparedFolder(tmp_path)
    if folder.is_complete:
        folder.verify()
        size = folder.record()["plan"]["options"]["size"]
        assert (tmp_path / "values").read_text() == f"{size} values"
        prepare(tmp_path, 2, replaces=True)
    else:
        prepare(tmp_path, 2)
    folder.verify()
    assert (tmp_path / "values").read_text() == "2 values"
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"values", "offsets", "prepared.json"}


@pytest.mark.parametrize("is_complete", [True, False])
def test_files_of_others_stay(tmp_path, is_complete):
    path = tmp_path / "data"
    if is_complete:
        prepare(path, 1)
    else:
        path.mkdir()
        (path / "plan.json").write_text("{}")
    (tmp_path / "corpus").mkdir()
    (path / "link").symlink_to(tmp_path / "corpus")
    for name in ("new.tsv", "mine/notes.txt", "link/a.tsv", "a.tsv.part"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("of the user")
    for name in ("ids.values", "validation.jsonl", "source.model.part"):
        (path / name).write_text("of a process that was killed")
    prepare(path, 2, replaces=True)
    found = {p.relative_to(path).as_posix() for p in path.rglob("*")}
    own = {"prepared.json", "values", "offsets"}
    users = {"new.tsv", "mine", "mine/notes.txt", "a.tsv.part", "link"}
    assert found == own | users
    assert (path / "link" / "a.tsv").read_text() == "of the user"
    assert (path / "values").read_text() == "2 values"
