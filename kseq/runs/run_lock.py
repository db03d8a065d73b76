"""One trainer of a run directory at a time."""

import atexit
import contextlib
import errno
import fcntl
import os
import platform

from kseq.files.model_path import is_run
from kseq.runs.atomic_replace import is_interrupted, recover
from kseq.user_error import RunError

# Of a file system that cannot lock files.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

# Of the runs that this process trains: {path: descriptor}. Whoever holds one
# is the trainer until the process ends, however it ends.
_HELD = {}


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
    if holder := lock(lock_path):
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
        with contextlib.suppress(OSError):  # somebody else uses it
            for folder in made:
                folder.rmdir()


def lock(path):
    """Locks a file for this process, until it ends.

    Args:
        path: a `pathlib.Path`; the file is created if it is missing.

    Returns:
        The other holder, a str; None if this process has the lock.

    Raises:
        RunError: where the file system has no locks.
    """
    path = path.resolve()
    if path in _HELD:
        if _is_at(_HELD[path], path):
            return None
        os.close(_HELD.pop(path))  # of a directory that was deleted
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode(errors="replace")
            os.close(descriptor)
            return holder
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            raise RunError(
                f"{path} cannot be locked: {error.strerror}. A run needs a "
                "file system with flock, which keeps a second process from "
                "training it. Lustre has it where it is mounted with the "
                "option flock; or use a --run on another disk."
            ) from error
        if _is_at(descriptor, path):
            break
        os.close(descriptor)  # its holder has just deleted it
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {platform.node()}".encode())
    _HELD[path] = descriptor
    return None


def unlock(path):
    """Deletes a file that this process has locked."""
    path = path.resolve()
    if path in _HELD:
        path.unlink(missing_ok=True)
        os.close(_HELD.pop(path))


def _is_at(descriptor, path):
    """Whether an open file is still the one at a path."""
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
