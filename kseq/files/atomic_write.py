"""Files that are written atomically."""

import os
import uuid
from pathlib import Path


def atomic_write(path, content):
    """Writes a str or bytes atomically: a file is never seen half-written.

    Raises:
        OSError: if it cannot be written; `path` is then unchanged.
    """
    if isinstance(content, str):
        content = content.encode("utf-8")
    part = partial_path(path)
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def replace_file(path, content):
    """Does that for bytes, under a name that no other call and no user has.

    For a path that the user chose, whose folder may hold a `.part` of theirs,
    and for processes that may write the same file.

    Raises:
        OSError: if it cannot be written; `path` is then unchanged.
    """
    part = Path(f"{path}.{uuid.uuid4().hex}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def partial_path(path):
    """The name under which `atomic_write` writes."""
    return path.with_name(path.name + ".part")


def flush(path):
    """Waits until a file or a directory is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
