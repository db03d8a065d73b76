"""A folder that appears with all of its files, or not at all."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kseq.user_error import UserError, write_error


@contextlib.contextmanager
def new_folder(directory: Path) -> Iterator[Path]:
    """Renames a hidden folder once the files of an export are in it.

    What a killed export has left there is deleted.

    Args:
        directory: `pathlib.Path` of a folder that does not exist.

    Yields:
        `pathlib.Path` of the hidden folder.

    Raises:
        UserError: if the folder exists, cannot be written, or is being written
            by another process.
        DiskError: if the disk is full.
    """
    hidden = directory.with_name(f".{directory.name}.partial")
    with contextlib.ExitStack() as stack:
        try:
            _check_new(directory)
            hidden.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(hidden, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stack.callback(shutil.rmtree, hidden, ignore_errors=True)
            _check_new(directory)  # another export may have just ended
            for file in hidden.iterdir():
                file.unlink()
            yield hidden
            hidden.rename(directory)
        except BlockingIOError as error:
            raise UserError(
                f"{directory} is being written by another export."
            ) from error
        except OSError as error:
            raise write_error(directory, error) from error


def _check_new(directory):
    if os.path.lexists(directory):
        raise UserError(f"{directory} exists; give a new folder with --to.")
