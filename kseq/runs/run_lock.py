"""One trainer of a run directory at a time."""

import atexit
import contextlib
import os

from kseq.files.file_lock import lock, unlock
from kseq.files.model_path import is_run
from kseq.runs.atomic_replace import is_interrupted, recover
from kseq.user_error import RunError

_NEEDS = (
    "A run needs a file system with flock, which keeps a second process from "
    "training it."
)


def lock_directory(path, lock_path, leftovers):
    """Creates and locks the directory of a run, and recovers it after a kill.

    If the process ends before it has written a run, its lock and the
    directories that were created for it are removed.

    Args:
        path: `pathlib.Path` of the directory.
        lock_path: `pathlib.Path` of the lock in it.
        leftovers: names of files that may be in a directory without a run.

    Raises:
        RunError: if the directory has other files and no run, another
            process holds it, or it cannot be written.
    """
    try:
        _lock_directory(path, lock_path, leftovers)
    except OSError as error:
        raise RunError(f"{path} cannot be used: {error.strerror}.") from error


def _lock_directory(path, lock_path, leftovers):
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    atexit.register(_remove_if_unused, path, lock_path, made, os.getpid())
    if not is_run(path) and not is_interrupted(path):
        _refuse_foreign_files(path, {lock_path.name, *leftovers})
    if holder := lock(lock_path, _NEEDS, "--run"):
        raise RunError(
            f"{path} is being trained by {holder}. Wait for it, or use a "
            "different directory."
        )
    recover(path)


def _refuse_foreign_files(path, ours):
    found = {file.name for file in path.iterdir()} - ours
    if found:
        raise RunError(
            f"{path} is not a run: it holds {min(found)}. Use a different "
            "directory."
        )


def _remove_if_unused(path, lock_path, made, process):
    """Removes a lock and the directories made for it, if they are empty."""
    if os.getpid() != process or not path.is_dir():
        return  # a process that was forked
    if {file.name for file in path.iterdir()} <= {lock_path.name}:
        unlock(lock_path)
        with contextlib.suppress(OSError):  # another process uses it
            for folder in made:
                folder.rmdir()
