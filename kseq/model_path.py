"""What a path on the command line is, found out without TensorFlow."""

import argparse
from pathlib import Path


def model_path(text):
    """The path of a run, or of the newest version of an export."""
    path = Path(text)
    if is_run(path):
        return path
    if (path / "saved_model.pb").is_file():
        return path
    versions = [
        file.parent
        for file in path.glob("*/saved_model.pb")
        if file.parent.name.isdecimal()
    ]
    if versions:
        return max(versions, key=lambda version: int(version.name))
    raise argparse.ArgumentTypeError(
        f"{path} is neither a run directory nor an export"
    )


def run_path(text):
    """The path of a run."""
    path = model_path(text)
    if not is_run(path):
        raise argparse.ArgumentTypeError(
            f"{text} is an export; this needs a run directory"
        )
    return path


def existing_file(text):
    """The path of a file."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path


def is_run(path):
    """Whether it is a run directory with a model."""
    names = ("config.json", "environment.json", "model.json")
    return all((path / name).is_file() for name in names)
