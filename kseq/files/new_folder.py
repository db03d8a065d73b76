"""A folder, or a file, that appears with all of its content or not at all."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kseq.user_error import UserError, write_error


@contextlib.contextmanager
def new_folder(directory: Path, file: str = "") -> Iterator[Path]:
    """Renames a hidden folder once the files of an export are in it.

    What a killed export has left there is deleted.

    Args:
        directory: `pathlib.Path` of a folder that does not exist; or of a file,
            with `file`.
        file: str, the name of a file in the hidden folder, which alone is
            renamed; the others are deleted.

    Yields:
        `pathlib.Path` of the hidden folder.

    Raises:
        UserError: if the path exists, cannot be written, or is being written
            by another process.
        DiskError: if the disk is full.
    """
    hidden = directory.with_name(f".{directory.name}.partial")
    with contextlib.ExitStack() as stack:
        try:
            check_new(directory)
            hidden.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(hidden, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stack.callback(shutil.rmtree, hidden, ignore_errors=True)
            check_new(directory)  # another export may have just ended
            for left in hidden.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield hidden
            (hidden / file).rename(directory)
        except BlockingIOError as error:
            raise UserError(
                f"{directory} is being written by another export."
            ) from error
        except OSError as error:
            raise write_error(directory, error) from error


def check_new(directory):
    """UserError if something is at a path."""
    if os.path.lexists(directory):
        raise UserError(f"{directory} exists; give a new path with --to.")
