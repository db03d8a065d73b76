"""A lock has one holder, whichever process that is."""

import os
import subprocess
import sys

from kseq.files.file_lock import lock, unlock

PROGRAM = """
import pathlib, sys
from kseq.files.file_lock import lock
print(lock(pathlib.Path(sys.argv[1]), "", ""))
"""


def locked_by_another(path):
    """What another process, which then ends, is told."""
    return subprocess.check_output(
        [sys.executable, "-c", PROGRAM, path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    ).strip()


def test_a_second_process_is_told_who_holds_it(tmp_path):
    path = tmp_path / "lock"
    assert lock(path, "", "") is None
    assert lock(path, "", "") is None  # held by this process
    assert locked_by_another(path).startswith(f"process {os.getpid()} on ")
    unlock(path)
    assert not path.exists()


def test_a_process_that_ended_holds_nothing(tmp_path):
    path = tmp_path / "lock"
    assert locked_by_another(path) == "None"
    assert lock(path, "", "") is None
    unlock(path)
