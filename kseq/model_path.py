"""Recognizes runs and exports by their files, without TensorFlow."""

from pathlib import Path

from kseq.user_error import UserError

RUN_FILES = ("config.json", "environment.json")  # a run has both


def model_path(path):
    """The path of a run, or of the newest version of an export.

    Args:
        path: str or path: `runs/<name>`, `saved_models/<name>` or
            `saved_models/<name>/<version>`.

    Returns:
        A `pathlib.Path`.

    Raises:
        UserError: if it is neither.
    """
    if not str(path) or "\0" in str(path):
        raise UserError(
            f"Expected the path of a run or an export. Received: {str(path)!r}"
        )
    path = Path(path)
    if is_run(path) or is_version(path):
        return path
    found = versions(path)
    if (path / ".old-run").is_dir():
        raise UserError(
            f"The start of a new run in {path} was interrupted. Repeat its "
            "command, which restores the old run or finishes the new one."
        )
    if not found:
        missing = "" if path.exists() else ": it does not exist"
        raise UserError(
            f"{path} is neither a run directory nor an export{missing}"
        )
    return found[max(found)]


def run_path(path):
    """The path of a run; UserError if it is something else."""
    if not is_run(found := model_path(path)):
        raise UserError(f"{path} is an export; this needs a run directory")
    return found


def is_run(path):
    """Whether a directory holds a run."""
    return all((Path(path) / name).is_file() for name in RUN_FILES)


def is_version(path):
    """Whether a directory holds one version of an export."""
    return (Path(path) / "saved_model.pb").is_file()


def versions(path):
    """The versions of an export that are there now, dict of number -> path."""
    try:
        children = list(Path(path).iterdir())
    except (OSError, ValueError):  # no folder, no permission, NUL
        return {}
    return {
        int(child.name): child
        for child in children
        if child.name.isascii() and child.name.isdecimal() and is_version(child)
    }
