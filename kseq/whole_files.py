"""Files that are written atomically."""

import os


def write_whole(path, content):
    """Writes a file atomically: it is never seen half-written.

    Args:
        path: a `pathlib.Path`.
        content: str or bytes.

    Raises:
        OSError: if it cannot be written; `path` is then unchanged.
    """
    if isinstance(content, str):
        content = content.encode("utf-8")
    part = part_of(path)
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def part_of(path):
    """The name under which `write_whole` writes."""
    return path.with_name(path.name + ".part")


def flush(path):
    """Waits until a file or a directory is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
