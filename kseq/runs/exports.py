"""The folder of a run's exports, which no other run shares."""

import os

from kseq.files.atomic_write import atomic_write
from kseq.user_error import RunError

_RUN = ".run"  # the path of the run, relative to the folder


def check_exports(directory, run_path):
    """Raises unless a run can be exported to a folder.

    Args:
        directory: `pathlib.Path`, `saved_models/<name>`; need not exist.
        run_path: `pathlib.Path` of the run.

    Raises:
        RunError: if the folder has exports of another run, or cannot be
            written.
    """
    folder = directory
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise RunError(
            f"{directory} cannot be written: {folder} is not a directory."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RunError(
            f"{directory} cannot be written: {folder} is not writable."
        )

    record = directory / _RUN
    if not record.is_file():
        return
    try:
        path = os.fsdecode(record.read_bytes())
        owner = (directory.resolve() / path).resolve()
    except ValueError as error:
        raise RunError(f"{record} is broken: {error}") from error
    if owner != run_path.resolve():
        raise RunError(
            f"{directory} has the exports of a different run, {owner} (this "
            f"run: {run_path.resolve()}). Rename this run, or use `kseq export "
            f"--to FOLDER`. To share the folder, delete {record}."
        )


def claim_exports(directory, run_path):
    """Records whose exports a folder has, after `check_exports`.

    Args:
        directory: `pathlib.Path`, which exists.
        run_path: `pathlib.Path` of the run.
    """
    path = os.path.relpath(run_path.resolve(), directory.resolve())
    if not (directory / _RUN).is_file():
        atomic_write(directory / _RUN, os.fsencode(path))
