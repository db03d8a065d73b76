"""The files of a run's data, which may move."""

import os

from kseq.data.files.fingerprints import fingerprints
from kseq.data.files.prepared_folder import PreparedFolder, is_prepared
from kseq.files import version_0_1
from kseq.files.json_files import read_json
from kseq.user_error import UserError

# Fields of a config that name files or folders.
_FIELDS = ("train", "validation", "vectors", "features", "images", "audio")


def data_files(config):
    """Identifies the data of a run by what is in its files.

    Args:
        config: dict of a recipe's config.

    Returns:
        dict, field -> one item for each of its paths; of fields that name
        files that are there.
    """
    found = {name: _found(config.get(name)) for name in _FIELDS}
    return {name: found[name] for name in found if found[name] is not None}


def moved_fields(config, recorded, new):
    """The fields that name the same data, or the same run, by other paths.

    Args:
        config: `pathlib.Path` of the config of a run.
        recorded: `pathlib.Path` of its `data_files`; without that file, its
            paths are read.
        new: dict of the config of the command that resumes it.

    Returns:
        A set of str.
    """
    old = version_0_1.renamed(read_json(config))
    names = [name for name in _FIELDS if old.get(name) != new.get(name)]
    now = data_files({name: new.get(name) for name in names})
    if now and recorded.is_file():
        before = read_json(recorded)
    else:
        before = data_files({name: old.get(name) for name in now})
    moved = {name for name in now if now[name] == before.get(name)}
    runs = [values.get("from_") for values in (old, new)]
    if all(runs) and len({*map(os.path.realpath, runs)}) == 1:
        moved.add("from_")
    return moved


def changed_fields(recorded, config):
    """The fields that name other data than before, by the same paths.

    Args:
        recorded: `pathlib.Path` of the `data_files` of a run; may be missing.
        config: dict of its config.

    Returns:
        A list of str, without files that are missing, and those that only a new
        run reads.
    """
    before = read_json(recorded) if recorded.is_file() else {}
    names = [name for name in _FIELDS if name in before and name != "vectors"]
    now = data_files({name: config.get(name) for name in names})
    return [name for name in now if now[name] != before[name]]


def _found(value):
    paths = [value] if isinstance(value, str) else value
    if not paths or not isinstance(paths, list):
        return None
    if not all(isinstance(path, str) for path in paths):
        return None
    try:
        return [_identified(path) for path in paths]
    except (UserError, OSError):
        return None


def _identified(path):
    if is_prepared(path):  # whose files may have the same sizes
        return [{"kind": "prepared", "sha256": PreparedFolder(path).digest()}]
    return fingerprints(path)
