"""Locks of files, which a process holds until it ends."""

import contextlib
import errno
import fcntl
import os
import platform

from kseq.terminal import progress
from kseq.user_error import RunError

# Of a file system that cannot lock files.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

# {path: descriptor}. A lock ends with its process, however that ends.
_HELD = {}


def lock(path, needs, option):
    """Locks a file for this process, until it ends.

    Args:
        path: a `pathlib.Path`; the file is created if it is missing.
        needs: str, a sentence for the message: why flock is needed.
        option: str, which names the directory.

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
                f"{path} cannot be locked: {error.strerror}. {needs} "
                "Mount Lustre with the option flock, or use a "
                f"{option} on another disk."
            ) from error
        if _is_at(descriptor, path):
            break
        os.close(descriptor)  # its holder has just deleted it
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {platform.node()}".encode())
    _HELD[path] = descriptor
    return None


@contextlib.contextmanager
def wait_for_lock(path, what):
    """Locks a file as soon as no other process, or thread, has it locked.

    Args:
        path: a `pathlib.Path`; the file is created if it is missing, and stays.
        what: str, what that process is training.

    Yields:
        A descriptor. A process that inherits it holds the lock, too.

    Raises:
        OSError: where the file system has no locks.
    """
    with open(path, "wb") as file:
        with progress(f"Waiting for the process that trains {what}"):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def unlock(path):
    """Deletes a file that this process has locked."""
    path = path.resolve()
    if path in _HELD:
        path.unlink(missing_ok=True)
        os.close(_HELD.pop(path))


def _is_at(descriptor, path):
    """Whether an open file is still the one at a path."""
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
