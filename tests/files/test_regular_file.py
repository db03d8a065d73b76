import os
from pathlib import Path

import pytest

from kseq.data import DataError, Tokenizer
from kseq.files.json_files import read_json
from kseq.files.regular_file import read_regular
from kseq.user_error import UserError


@pytest.fixture(params=["pipe", "device"])
def endless(request, tmp_path):
    """What a folder of somebody else may have in place of a file."""
    path = tmp_path / "a"
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    return path


def test_what_is_no_file_is_not_read(endless):
    with pytest.raises(OSError, match="a pipe, a device or a socket") as error:
        read_regular(endless)
    assert error.value.filename == str(endless)
    with pytest.raises(UserError, match="a cannot be read: it is a pipe"):
        read_json(endless)
    with pytest.raises(DataError, match="a: it is a pipe"):
        Tokenizer.load(endless)


def test_files_and_folders(tmp_path):
    path = Path(tmp_path, "a")
    with pytest.raises(FileNotFoundError):
        read_regular(path)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
    path.write_bytes(b"a")
    assert read_regular(path) == b"a"
