"""The files of a version, which may change or disappear at any time."""

import os
from pathlib import Path

from kseq.user_error import UserError


def check_inside(folder, path):
    """UserError if a version has files that are not in its folder."""
    base = folder.resolve()
    for file in _walk(path):
        if not file.resolve().is_relative_to(base):
            raise UserError(f"{file} is a link to a file outside {folder}")


def stamp_of(path):
    """A stamp of the files of a version, which changes when they change.

    An error, as for a file that is being deleted, is part of the stamp.
    """
    found, errors = [], []
    for file in _walk(path, errors.append):
        try:
            facts = file.stat()
        except OSError as error:
            errors.append(error)
            continue
        # The last field changes with permissions, too.
        times = facts.st_mtime_ns, facts.st_ctime_ns
        found.append((str(file), facts.st_size, *times))
    return sorted(found), sorted(map(str, errors))


def _fail(error):
    raise error


def _walk(path, fail=_fail):
    """A folder and its contents; `fail` is called with each OSError."""
    yield path
    for folder, folders, files in os.walk(path, onerror=fail):
        for name in (*folders, *files):
            yield Path(folder, name)
