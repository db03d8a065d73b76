"""Errors of files that are written."""

import errno
import io
import os

import pytest

from kseq.files.atomic_write import atomic_write, named_errors, replace_file


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("write", [atomic_write, replace_file])
def test_a_full_disk_names_the_file(tmp_path, monkeypatch, write):
    """An error of writing, unlike one of opening, names none."""
    path = tmp_path / "metrics.jsonl"
    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(type(path), "write_bytes", full)
    with pytest.raises(OSError, match="No space") as raised:
        write(path, b"text")
    assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_keeps_its_name(tmp_path):
    for error, name in (
        (OSError(errno.EIO, "broken", "other"), "other"),
        (io.UnsupportedOperation("no errno"), None),
    ):
        with pytest.raises(OSError) as raised, named_errors(tmp_path):
            raise error
        assert raised.value.filename == name
