"""Folders that appear whole."""

import contextlib
import os
import shutil

from kseq.user_error import UserError, write_error


@contextlib.contextmanager
def new_folder(path):
    """Writes a folder under another name, and renames it at the end.

    Args:
        path: a `pathlib.Path`, where nothing is.

    Yields:
        `pathlib.Path`, of the folder that is written.

    Raises:
        UserError: if `path` exists or cannot be written.
        DiskError: if the disk is full.
    """
    if path.exists():
        raise UserError(f"{path} exists; give a new folder with --to.")
    hidden = path.with_name(f".{path.name}.partial")
    try:
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir(parents=True)
        yield hidden
        os.rename(hidden, path)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
