"""Files that are written atomically."""

import contextlib
import os
import uuid
from pathlib import Path


def atomic_write(path, content, part=None):
    """Writes a str or bytes atomically: a file is never seen half-written.

    Args:
        path: `pathlib.Path`.
        content: str or bytes.
        part: `pathlib.Path`, the name until then; by default `partial_path`.
            A folder of the user may hold such a file of theirs: `unique_path`.

    Raises:
        OSError: if it cannot be written; `path` is then unchanged.
    """
    if isinstance(content, str):
        content = content.encode("utf-8")
    part = part or partial_path(path)
    try:
        with named_errors(path), part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def replace_file(path, content):
    """Does that for bytes that several processes may write, without waiting.

    After a crash of the machine the file may be broken.

    Raises:
        OSError: if it cannot be written; `path` is then unchanged.
    """
    part = unique_path(path)
    try:
        with named_errors(path):
            part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def named_errors(path):
    """Adds the path of a file to errors of writing to it, which have none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = os.fspath(path)
        raise


def unique_path(path):
    """The path of a file beside another, with a name that none has."""
    return Path(f"{path}.{uuid.uuid4().hex}")


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
