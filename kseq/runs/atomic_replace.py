"""A new run atomically replaces an old one.

A run is replaced in four steps, and a process can be killed at any moment:

1. The files of the new run are written to `.new-run/`.
2. The files of the old run are moved to `.old-run/`.
3. `.new-run/` is renamed to `.whole-run/`: from here on the new run counts.
4. The files of the new run are moved out of it, and `.old-run/` is deleted.

`recover` restores the old run if step 3 was not reached, and otherwise
finishes step 4.
"""

import os
import shutil

from kseq.files.atomic_write import atomic_write, flush
from kseq.files.model_path import RUN_FILES

_NEW, _WHOLE, _OLD = ".new-run", ".whole-run", ".old-run"


def replace_atomically(path, files, names):
    """Writes the files of a new run and deletes those of the old one.

    Args:
        path: `pathlib.Path` of the run, which is locked.
        files: dict, name -> content, str or bytes.
        names: of all files and directories that a run may have.

    Raises:
        OSError: if something cannot be written. If the new run is incomplete,
            the old one is restored.
    """
    try:
        _write(path, files, names)
    except BaseException:
        recover(path)
        raise
    recover(path)


def is_interrupted(path):
    """Whether `replace_atomically` was killed there."""
    return any((path / name).is_dir() for name in (_NEW, _WHOLE, _OLD))


def recover(path):
    """Restores the old run, or finishes the new one.

    Args:
        path: `pathlib.Path` of the run, which is locked.
    """
    new, whole, old = (path / name for name in (_NEW, _WHOLE, _OLD))
    if new.is_dir():
        if old.is_dir():
            _move(old, path)
            old.rmdir()
        shutil.rmtree(new)
    if whole.is_dir():
        _move(whole, path)
        flush(path)
        whole.rmdir()
    if old.is_dir():
        shutil.rmtree(old)


def _write(path, files, names):
    new, old = path / _NEW, path / _OLD
    new.mkdir()
    for name, content in files.items():
        atomic_write(new / name, content)
    flush(new)

    old.mkdir()
    found = [name for name in names if os.path.lexists(path / name)]
    for name in sorted(found, key=_makes_a_run, reverse=True):
        (path / name).rename(old / name)
    flush(path)
    new.rename(path / _WHOLE)
    flush(path)


def _move(source, target):
    names = (file.name for file in source.iterdir())
    for name in sorted(names, key=_makes_a_run):  # last
        (source / name).rename(target / name)


def _makes_a_run(name):
    return name in RUN_FILES
