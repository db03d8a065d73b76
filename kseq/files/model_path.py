"""Recognizes runs and exports by their files, without TensorFlow."""

import logging
import os
import stat
from pathlib import Path

from kseq.files.built_in import built_in_run, is_built_in
from kseq.files.hub import hub_folder, is_hub
from kseq.terminal import escaped_line
from kseq.user_error import UserError

RUN_FILES = ("config.json", "environment.json")  # a run has both
LAST_VERSION = 2**63 - 1  # TensorFlow Serving's versions are int64

_log = logging.getLogger(__name__)


def model_path(path: str | os.PathLike) -> Path:
    """The path of a run, or of the newest version of an export.

    A version that this process may not read is skipped, with a warning.

    Args:
        path: str or path: `runs/<name>`, `saved_models/<name>`,
            `saved_models/<name>/<version>`, or a name, see `local_path`.

    Returns:
        A `pathlib.Path`.

    Raises:
        UserError: if it is neither.
    """
    if not str(path) or "\0" in str(path):
        raise UserError(
            f"Expected the path of a run or an export. Received: {str(path)!r}"
        )
    path = local_path(path)
    try:
        if is_run(path) or is_version(path):
            return path
        if (path / ".old-run").is_dir():
            raise UserError(
                f"The start of a new run in {path} was interrupted. Repeat its "
                "command, which restores the old run or finishes the new one."
            )
        found, reason = _newest(version_folders(path)), ""
    except NotADirectoryError:
        found, reason = None, ""
    except FileNotFoundError:
        found, reason = None, ": it does not exist"
    except OSError as error:
        found, reason = None, f": it cannot be read. {error.strerror}"
    if found is None:
        raise UserError(
            f"{path} is neither a run directory nor an export{reason}"
        )
    return found


def local_path(path):
    """A path on this machine, also for the name of a model.

    Args:
        path: str or path; `hf://<owner>/<name>`, of which a copy is made, see
            `hub_folder`; or `builtin://<name>`, which is trained, see
            `built_in_run`.
    """
    if is_hub(path):
        return hub_folder(path)
    return built_in_run(path) if is_built_in(path) else Path(path)


def is_model_name(path):
    """Whether what looks like a URL is the name of a model."""
    return is_hub(path) or is_built_in(path)


def run_path(path):
    """The path of a run; UserError if it is something else."""
    if not is_run(found := model_path(path)):
        raise UserError(f"{path} is an export; this needs a run directory")
    return found


def is_run(path):
    """Whether a directory holds a run.

    Raises:
        OSError: if that cannot be known now: a run must not be taken for an
            empty directory.
    """
    return all((Path(path) / name).is_file() for name in RUN_FILES)


def is_version(path):
    """Whether a directory holds one version of an export, which can be read."""
    try:
        return holds_version(path)
    except (OSError, ValueError):  # no permission, a stale handle, NUL
        return False


def versions(path):
    """The versions of an export that are there now, dict of number -> path.

    What cannot be read now, because of its permissions or an error of a shared
    disk, counts as not there.
    """
    try:
        found = version_folders(path)
    except (OSError, ValueError):  # no folder, no permission, NUL
        return {}
    return {
        number: folder for number, folder in found.items() if is_version(folder)
    }


def version_folders(path):
    """What has the name of a version, dict of number -> path.

    Of several names of one number, such as `1` and `001`, the shortest counts.

    Raises:
        OSError: if the folder cannot be read.
    """
    numbered = [
        (number, child)
        for child in Path(path).iterdir()
        if (number := version_number(child.name)) is not None
    ]
    numbered.sort(key=lambda pair: len(pair[1].name), reverse=True)
    return dict(numbered)


def version_number(text):
    """The version that digits name; None where TensorFlow Serving has none."""
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0") or "0"
    # Python refuses to read thousands of digits.
    is_short = len(digits) <= len(f"{LAST_VERSION}")
    number = int(digits) if is_short else LAST_VERSION + 1
    return number if number <= LAST_VERSION else None


def holds_version(path):
    """Whether a directory holds one version of an export.

    Raises:
        OSError: if that cannot be known now.
    """
    try:
        mode = (Path(path) / "saved_model.pb").stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(mode)


def _newest(folders):
    """The newest version that can be read; None where there is none."""
    problems = []
    for number in sorted(folders, reverse=True):
        folder = folders[number]
        try:
            if holds_version(folder):
                (folder / "saved_model.pb").open("rb").close()
                for problem in problems:
                    _log.warning(f"{problem} {folder} is used.")
                return folder
        except OSError as error:
            problems.append(
                f"{escaped_line(folder)} cannot be read: {error.strerror}."
            )
    if problems:
        raise UserError(" ".join(problems))
    return None
