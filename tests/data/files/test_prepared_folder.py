import contextlib
import errno
import shutil
from pathlib import Path

import pytest

from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder, replace_file


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


def test_an_array_without_a_shape(folder):
    with (
        pytest.raises(DataError, match=r"is broken: prepared\.json\.$"),
        folder.opened("pairs") as record,
    ):
        folder.array(record, "ids")


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


def follow(path, part_size, replaces=False):
    """Plans anew, with a part in place of the files that were there."""
    folder = PreparedFolder(path, replaces)
    folder.lock()
    plan = folder.follow("pairs", {"size": part_size, "part_size": 1}, {})
    (folder.parts / "part").touch()
    folder.unlock()
    return plan


@pytest.mark.parametrize("step", range(12))
def test_killed_while_it_is_replaced(tmp_path, monkeypatch, step):
    """Old data are whole, or nothing of them is left that anybody reads."""
    plan = follow(tmp_path, 1)
    for name in ("values", "offsets"):
        (tmp_path / name).write_text("old")
    PreparedFolder(tmp_path).finish({"kind": "pairs", "plan": plan})
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
        for name in ("touch", "unlink", "replace"):
            patch.setattr(Path, name, killed(getattr(Path, name)))
        patch.setattr(shutil, "rmtree", killed(shutil.rmtree))
        with contextlib.suppress(Killed):
            follow(tmp_path, 2, replaces=True)
    PreparedFolder(tmp_path).unlock()
    folder = PreparedFolder(tmp_path)
    if folder.is_complete:
        folder.verify()
        with pytest.raises(DataError, match="other options: size is 1, now 2"):
            follow(tmp_path, 2)
        follow(tmp_path, 2, replaces=True)
    else:
        follow(tmp_path, 2)
    assert {file.name for file in tmp_path.iterdir()} == {"plan.json", "parts"}
