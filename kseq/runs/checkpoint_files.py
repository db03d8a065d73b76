"""Checkpoint files: writing, finding and verifying them."""

import hashlib
import itertools
import logging
import re
import shutil
import sys
from pathlib import Path

import tensorflow as tf

from kseq.files.atomic_write import atomic_write, flush
from kseq.files.literal_path import literal_path
from kseq.files.regular_file import check_regular
from kseq.runs.checkpoint_index import check_index
from kseq.runs.finite_weights import check_finite
from kseq.user_error import DiskError, RunError, reason_of

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # what tf.train adds to a name
_MANIFEST = ".sha256"
_NOTHING = ""  # names no entry
# Files of a save, also of a killed one, but not a copy that a user made.
_NAME = re.compile(r"ckpt-[0-9]+[._].*")
_MANIFEST_NAME = re.compile(rf"ckpt-[0-9]+{re.escape(_MANIFEST)}")

WEIGHTS = "average", "best", "last"  # the first that a run has is used

_log = logging.getLogger(__name__)


class BrokenCheckpointError(RunError):
    """A checkpoint whose content is not what was written."""


def write_checkpoint(directory, step, keep, **values):
    """Writes a checkpoint, and then deletes those that are too old.

    It is complete when its manifest is written: the SHA-256 of each of its
    files, in the format of `sha256sum`. If the process is killed earlier, the
    previous checkpoint remains the newest.

    Args:
        directory: a `pathlib.Path`; created if it is missing.
        step: int, number of training steps.
        keep: int, number of checkpoints to keep; at least 1. Or a list of int,
            their steps, if they are not the newest.
        **values: what `tf.train.Checkpoint` takes.

    Raises:
        DiskError: where a file cannot be written. No other checkpoint is
            lost.
    """
    path = directory / f"ckpt-{step}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _manifest(path).unlink(missing_ok=True)
        with literal_path(directory) as plain:
            tf.train.Checkpoint(**values).write(str(plain / path.name))
        files = sorted(directory.glob(f"{path.name}.*"))
        for file in files:
            flush(file)
        lines = [f"{_sha256(file)}  {file.name}\n" for file in files]
        atomic_write(_manifest(path), "".join(lines))
        flush(directory)
        delete_others(directory, keep)
    except (OSError, tf.errors.OpError) as error:
        raise DiskError(
            f"{path} could not be written; what was saved before is intact. "
            f"{_reason(error)}"
        ) from error


def delete_others(directory, keep):
    """Deletes the checkpoints that are too old, and what a kill has left.

    Args:
        directory: see `write_checkpoint`.
        keep: see `write_checkpoint`.

    Raises:
        OSError: where a file cannot be deleted.
    """
    paths = checkpoint_paths(directory)
    if isinstance(keep, int):
        kept = paths[-keep:]
    else:
        kept = [path for path in paths if step_of(path) in keep]
    kept = tuple(f"{Path(path).name}." for path in kept)
    found = [p for p in directory.iterdir() if _NAME.fullmatch(p.name)]
    # The manifest first: without it the other files do not count.
    for path in sorted(found, key=lambda path: path.suffix != _MANIFEST):
        if path.name.startswith(kept):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _reason(error):
    if isinstance(error, OSError):
        return f"{error.strerror}."
    return reason_of(error)


def checkpoint_paths(directory):
    """The checkpoints in a directory, the oldest first.

    Args:
        directory: a `pathlib.Path`; need not exist.

    Returns:
        A list of str, as `tf.train` expects them.
    """
    manifests = (
        path
        for path in directory.glob(f"ckpt-*{_MANIFEST}")
        if _MANIFEST_NAME.fullmatch(path.name) and path.is_file()
    )
    return sorted(
        (str(path.with_suffix("")) for path in manifests), key=step_of
    )


def step_of(path):
    """Number of trained steps of a checkpoint."""
    return int(path.rsplit("-", 1)[1])


def read_checkpoint(path, *names):
    """What is in a checkpoint.

    Args:
        path: one of `checkpoint_paths`.
        *names: str, of the entries that are read into memory, such as "vars"
            for all variables of the model: the state of an optimizer is twice
            as large. By default all are.

    Returns:
        A dict of tensors; `vars/0`, `vars/1`, ... are the values of
        `model.variables`, `opt/0`, ... those of the optimizer.

    Raises:
        BrokenCheckpointError: where a file is missing or not what was written.
    """
    _check_manifest(Path(path))
    return _read(path, names)


def _read(path, names):
    try:
        check_index(path)
        return _tensors(path, names)
    except (OSError, ValueError, TypeError, tf.errors.OpError) as error:
        raise BrokenCheckpointError(
            f"{path} is broken: {reason_of(error)}"
        ) from error


def read_newest(directory, *names):
    """Reads the newest intact checkpoint.

    Newer checkpoints, which are broken, are logged as warnings, with the one
    that is used instead. If training replaces a checkpoint while it is read,
    the search restarts.

    Args:
        directory: a `pathlib.Path`; need not exist.
        *names: see `read_checkpoint`.

    Returns:
        path and dict of `read_checkpoint`, or None if there is no intact
        checkpoint.
    """
    broken = set()
    while True:
        found = [(p, _content(p)) for p in checkpoint_paths(directory)]
        intact = [each for each in found if each not in broken]
        if not intact:
            return None
        path, content = intact[-1]
        try:
            tensors = read_checkpoint(path, *names)
        except BrokenCheckpointError as error:
            if _content(path) == content:
                _log.warning(f"Skipped: {error}")
                broken.add((path, content))
            continue
        if broken:
            _log.warning(f"{path} is used instead.")
        return path, tensors


def newest_intact(directory):
    """The path of the newest intact checkpoint, or None; see `read_newest`."""
    newest = read_newest(directory, _NOTHING)
    return newest and newest[0]


def read_weights(run, name):
    """The newest intact weights of a run.

    Args:
        run: `RunDirectory`.
        name: "average", "best" or "last".

    Returns:
        The path of their checkpoint, and the values of `model.variables`.

    Raises:
        RunError: if there are none; it names those of the other names.
        UserError: if a weight is NaN or infinite.
    """
    newest = read_newest(run.checkpoints / name, "vars")
    if newest is None:
        raise _without_weights(run, name)
    path, tensors = newest
    values = numbered(tensors, "vars")
    check_finite(path, values)
    return path, values


def check_exported_weights(path):
    """Checks the weights of an export without its graph.

    Args:
        path: `pathlib.Path` of a version.

    Raises:
        UserError: if a weight is NaN or infinite, or cannot be read.
    """
    tensors = _read(path / "variables" / "variables", ("weights", "parts"))
    check_finite(path, tensors.values())


def newest_weights(run, name):
    """The path that `read_weights` has, without reading the weights."""
    path = newest_intact(run.checkpoints / name)
    if path is None:
        raise _without_weights(run, name)
    return path


def _without_weights(run, name):
    others = (newest_intact(run.checkpoints / n) for n in WEIGHTS if n != name)
    intact = ", ".join(
        f"{Path(path).parent.name!r} of step {step_of(path)}"
        for path in filter(None, others)
    )
    instead = f" Intact: {intact}." if intact else ""
    return RunError(f"{run.path} has no intact checkpoint {name!r}.{instead}")


def numbered(tensors, name):
    """The values of `name/0`, `name/1`, ... in this order."""
    names = (f"{name}/{index}" for index in itertools.count())
    found = itertools.takewhile(tensors.__contains__, names)
    return [tensors[name] for name in found]


def entry(path, tensors, name):
    """One value of a checkpoint; BrokenCheckpointError if it has none."""
    if name not in tensors:
        raise BrokenCheckpointError(f"{path} has no {name}.")
    return tensors[name].numpy()


def read_scores(paths):
    """The scores of checkpoints in `top`, which are higher for better ones.

    Args:
        paths: list of str, see `checkpoint_paths`.

    Returns:
        A dict, step -> float.

    Raises:
        BrokenCheckpointError: see `read_checkpoint`.
    """
    return {
        step_of(path): float(
            entry(path, read_checkpoint(path, "score"), "score")
        )
        for path in paths
    }


def best_steps(scores, count):
    """The steps with the highest scores; of equal ones, the first.

    Args:
        scores: dict, step -> float.
        count: int, how many.

    Returns:
        A list of int.
    """
    return sorted(scores, key=lambda step: (-scores[step], step))[:count]


def assign(path, variables, values):
    """Gives variables the values of a checkpoint.

    Args:
        path: of the checkpoint, for the message.
        variables: list of `keras.Variable`.
        values: list of tensors, see `numbered`.

    Raises:
        RunError: if they do not fit; nothing is assigned then.
    """
    if len(variables) != len(values):
        raise RunError(
            f"{path} has {len(values)} variables; the model or its optimizer "
            f"has {len(variables)}: they do not belong together."
        )
    for variable, value in zip(variables, values, strict=True):
        if tuple(variable.shape) != tuple(value.shape) or (
            value.dtype == tf.string
        ):
            raise RunError(
                f"{path} has {value.dtype.name} {tuple(value.shape)} for "
                f"{variable.path}, which has the shape "
                f"{tuple(variable.shape)}: they do not belong together."
            )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _manifest(path):
    return path.with_name(path.name + _MANIFEST)


def _content(path):
    """The content of a manifest, which changes if a checkpoint is rewritten."""
    try:
        return _manifest(Path(path)).read_bytes()
    except OSError:
        return b""


def _sha256(path):
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_manifest(path):
    try:
        lines = _manifest(path).read_text("ascii").splitlines()
        for line in lines:
            digest, name = line.split("  ")
            if _sha256(path.with_name(name)) != digest:
                raise BrokenCheckpointError(
                    f"{path} is broken: {name} is not what was written."
                )
    except BrokenCheckpointError:
        raise
    except (OSError, ValueError) as error:
        raise BrokenCheckpointError(f"{path} is broken: {error}") from error
    if not lines:
        raise BrokenCheckpointError(f"{path} is broken: its manifest is empty.")


def _tensors(path, names):
    path = Path(path)
    with literal_path(path.parent) as plain:
        prefix = str(plain / path.name)
        found = tf.train.load_checkpoint(prefix).get_variable_to_dtype_map()
        types = {
            name: found[name]
            for name in found
            if not names or name.partition("/")[0] in names
        }
        if not types:
            return {}
        tensors = tf.raw_ops.RestoreV2(
            prefix=prefix,
            tensor_names=list(types),
            shape_and_slices=[""] * len(types),
            dtypes=list(types.values()),
        )
    entries = (name.removesuffix(_VALUE) for name in types)
    return dict(zip(entries, tensors, strict=True))


def best_weights(run):
    """The name of the checkpoints that are used by default.

    That is "average" where there is one, then "best", then "last". An average
    that is older than `best`, because training has resumed, is skipped with a
    warning on standard error.

    Args:
        run: `RunDirectory`.
    """
    steps = {}
    for name in WEIGHTS:
        if paths := checkpoint_paths(run.checkpoints / name):
            steps[name] = step_of(paths[-1])
    first, *others = [*steps, "last"]
    if first == "average" and steps.get(others[0], 0) > steps[first]:
        print(
            f"{run.path} was trained further after its average of step "
            f"{steps[first]}: {others[0]!r} of step {steps[others[0]]} is used "
            "instead. `kseq average` makes a new average.",
            file=sys.stderr,
        )
        return others[0]
    return first
