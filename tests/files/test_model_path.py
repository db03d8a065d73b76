import logging

import pytest

from kseq.files.model_path import (
    LAST_VERSION,
    is_run,
    model_path,
    run_path,
    version_number,
    versions,
)
from kseq.user_error import UserError
from tests.failing_disk import ERRORS, FailingDisk


@pytest.fixture
def disk(monkeypatch):
    return FailingDisk(monkeypatch)


@pytest.fixture
def base(tmp_path):
    for number in (1, 2):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "saved_model.pb").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1", 1),
        ("0012", 12),
        ("0" * 250 + "7", 7),
        ("1732665600123456789", 1732665600123456789),  # nanoseconds
        (f"{LAST_VERSION}", 2**63 - 1),
        (f"{2**63}", None),
        ("9" * 5000, None),
        ("", None),
        ("-1", None),
        ("1_0", None),
        ("٣", None),
        ("²", None),
    ],
)
def test_version_number(text, number):
    assert version_number(text) == number


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("part", ["2", "2/saved_model.pb"])
def test_a_version_that_cannot_be_read(base, disk, caplog, error, part):
    disk.errors[base / part] = error
    assert versions(base) == {1: base / "1"}
    with caplog.at_level(logging.WARNING):
        assert model_path(base) == base / "1"
    if error != "ENOENT":
        assert f"{base / '2'} cannot be read: " in caplog.text
        assert f"{base / '1'} is used" in caplog.text


def test_the_file_alone_may_not_be_read(base, monkeypatch, caplog):
    file = base / "2" / "saved_model.pb"
    replaced = type(file).open

    def fail(path, *args):
        if path == file:
            raise PermissionError(13, "Permission denied", str(path))
        return replaced(path, *args)

    monkeypatch.setattr(type(file), "open", fail)
    assert model_path(base) == base / "1"
    assert "2 cannot be read: Permission denied." in caplog.text


@pytest.mark.parametrize("error", ["EACCES", "ESTALE", "EIO"])
def test_what_cannot_be_read_at_all(base, disk, error):
    disk.errors = {base / "1": error, base / "2": error}
    with pytest.raises(UserError, match=r"2 cannot be read: .*1 cannot be"):
        model_path(base)
    disk.errors = {base: error}
    assert versions(base) == {}
    for find in (model_path, run_path):
        with pytest.raises(UserError, match="nor an export: it cannot be read"):
            find(base)


@pytest.mark.parametrize("error", ["EACCES", "ESTALE", "EIO"])
def test_a_run_that_cannot_be_read_is_no_empty_directory(tmp_path, disk, error):
    for name in ("config.json", "environment.json"):
        (tmp_path / name).touch()
    assert is_run(tmp_path)
    disk.errors[tmp_path] = error
    with pytest.raises(OSError):
        is_run(tmp_path)


def test_what_is_none(tmp_path):
    with pytest.raises(UserError, match="nor an export: it does not exist"):
        model_path(tmp_path / "missing")
    with pytest.raises(UserError, match="neither a run directory nor an expor"):
        model_path(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="neither a run directory nor an expor"):
        model_path(tmp_path / "file")
