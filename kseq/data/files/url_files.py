"""Data in object stores, such as gs://, which are copied to a local disk."""

import contextlib
import glob
import hashlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kseq.data.files.data_error import DataError
from kseq.data.files.fingerprints import sha256_of
from kseq.data.files.prepared_folder import RECORD, recorded_files
from kseq.files.cache_folder import cache_folder
from kseq.files.json_files import read_json
from kseq.terminal import escaped_line, progress
from kseq.user_error import DiskError, UserError, reason_of

# Options of commands that name data, which may have URLs.
DATA_OPTIONS = (
    *("train", "validation", "files", "features", "network_weights"),
    *("source", "target", "reference", "prefix", "glossary"),
    *("a", "b"),  # of kseq compare
)
_FOLDERS = ("images", "audio")


def is_url(path: str | os.PathLike) -> bool:
    """Whether a path is a URL, which names its file system."""
    return re.match(r"[A-Za-z][\w+.-]*://", os.fspath(path)) is not None


def local_copies(paths: str | Iterable[str] | None):
    """Paths in place of URLs: those of copies on the local disk.

    A URL names a file, several files by a pattern, or a folder of prepared
    data, which are mapped into memory and therefore copied. Any file system
    that `tf.io.gfile` knows is read. Copies are in `kseq` of XDG_CACHE_HOME,
    by default `~/.cache`. They are kept: a file is copied again only if its
    size or time has changed; of prepared data each file is copied once, and
    its content is compared with `prepared.json`, which is copied last.

    Args:
        paths: one or several, or None; what is not a URL is returned.

    Returns:
        The same, a str, a tuple of str or None.

    Raises:
        DataError: TensorFlow does not know the file system or cannot read it,
            or there is no such file.
        DiskError: the copy cannot be written.
    """
    if paths is None:
        return None
    if isinstance(paths, str | os.PathLike):
        return _local_copy(os.fspath(paths)) if is_url(paths) else paths
    return tuple(map(local_copies, paths))


def refuse_folder_urls(options: object):
    """Raises DataError for a URL in place of a folder of media.

    Options are those of a command, or the config of a recipe.
    """
    for name in _FOLDERS:
        if is_url(found := getattr(options, name, None) or ""):
            raise DataError(
                f"--{name} takes a local folder. To read from URLs, put its "
                "files and their texts into tar archives, and give these "
                f"instead of the table. Received: {found}"
            )


def urls_of(
    options: object, names: Iterable[str] = DATA_OPTIONS
) -> dict[str, Any]:
    """Those of the options that have URLs, by name.

    Options are those of a command, or the config of a recipe.
    """
    given = {name: getattr(options, name, None) for name in names}
    return {
        name: value
        for name, value in given.items()
        if any(map(is_url, _as_tuple(value)))
    }


def copy_urls(options: object):
    """Replaces URLs in the options of a command by local copies.

    Raises:
        DataError: see `refuse_folder_urls` and `local_copies`.
        DiskError: see `local_copies`.
    """
    refuse_folder_urls(options)
    for name, value in urls_of(options).items():
        setattr(options, name, local_copies(value))


def _as_tuple(value):
    if isinstance(value, str | os.PathLike):
        return (value,)
    return value if isinstance(value, list | tuple) else ()


def _local_copy(url):
    with _errors_of(url):
        from tensorflow.io import gfile

        if gfile.exists(f"{url.rstrip('/')}/{RECORD}"):
            return str(_copy_prepared(url.rstrip("/")))
        if gfile.exists(url):
            if gfile.isdir(url):
                raise DataError(
                    f"{url} is a folder without prepared data: give the URLs "
                    "of files, or a pattern in quotes."
                )
            return str(_copy_file(url, _folder_of(url)))
        start, name = url.rsplit("/", 1)
        if glob.has_magic(start):
            raise DataError(
                f"{url}: a pattern must be in the last part of a URL."
            )
        files = gfile.glob(url) if glob.has_magic(name) else []
        if not files:
            raise DataError(f"There is no file {url!r:.500}.")
        folder = _folder_of(url)
        copied = {_copy_file(file, folder) for file in files}
        for path in {*folder.iterdir()} - copied:
            path.unlink()  # in the store it is no more
        return str(folder / name)


@contextlib.contextmanager
def _errors_of(url):
    """Gives the errors of TensorFlow's file systems their messages."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.UnimplementedError:
        raise DataError(
            f"{url} cannot be read: TensorFlow has no file system for "
            f"{url.split('://')[0]}://. Copy the data to a local disk."
        ) from None
    except tf.errors.ResourceExhaustedError as error:
        raise DiskError(
            f"{url} cannot be copied: {reason_of(error)}"
        ) from error
    except tf.errors.OpError as error:
        raise DataError(f"{url} cannot be read: {reason_of(error)}") from error


def _folder_of(*keys):
    """The folder of the copies of one URL, which is created."""
    key = hashlib.sha256("\0".join(keys).encode()).hexdigest()[:16]
    folder = cache_folder() / key
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{folder} cannot be used: {error.strerror}. Set XDG_CACHE_HOME to "
            "a folder on a local disk."
        ) from None
    return folder


def _copy_file(url, folder):
    """Copies a file unless its copy has its size and time."""
    from tensorflow.io import gfile

    found = gfile.stat(url)
    path = folder / url.rsplit("/", 1)[1]
    if path.is_file():
        known = path.stat()
        if (known.st_size, known.st_mtime_ns) == (
            found.length,
            found.mtime_nsec,
        ):
            return path
    with _downloaded(url, path) as part:
        os.utime(part, ns=(found.mtime_nsec, found.mtime_nsec))
    return path


def _copy_prepared(url):
    """Copies what is missing of a folder of prepared data."""
    from tensorflow.io import gfile

    with gfile.GFile(f"{url}/{RECORD}", "rb") as file:
        content = file.read()
    # Other data at the same URL have another folder, for runs may use these.
    folder = _folder_of(url, hashlib.sha256(content).hexdigest())
    folder = folder / url.rsplit("/", 1)[1]
    folder.mkdir(exist_ok=True)
    if (folder / RECORD).is_file():
        return folder
    with _downloaded(f"{url}/{RECORD}", folder / RECORD) as record:
        found = {}
        with contextlib.suppress(UserError):
            found = read_json(record)
        files = recorded_files(found, f"{url}/{RECORD}")
        for name, identity in files.items():
            path = folder / name
            if path.is_file():  # of a copy that was interrupted
                continue
            with _downloaded(f"{url}/{name}", path) as part:
                digest = sha256_of(part, f"Comparing {escaped_line(name)}")
                if identity != {"bytes": part.stat().st_size, "sha256": digest}:
                    raise DataError(
                        f"{url} is broken: the content of {name} has changed."
                    )
    return folder


@contextlib.contextmanager
def _downloaded(url, path) -> Iterator[Path]:
    """A copy beside its folder, which is moved there at the end."""
    from tensorflow.io import gfile

    # Several processes of this machine may copy it at the same time.
    part = path.parent.with_name(f"{uuid.uuid4().hex}.part")
    try:
        with progress(f"Copying {escaped_line(url)}"):
            gfile.copy(url, str(part))
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
