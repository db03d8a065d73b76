"""Folders of prepared data, whatever it is.

`prepared.json` is written last: with it a folder is complete. Until then
`plan.json` says what the folder is prepared from, and `parts` holds what is
finished.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from kseq.data.files.data_error import DataError, ReadError
from kseq.data.files.fingerprints import kind_of_content, sha256_of
from kseq.files.atomic_write import atomic_write, partial_path
from kseq.files.file_lock import lock, unlock
from kseq.files.json_files import as_read, read_json, to_json
from kseq.terminal import escaped_line
from kseq.user_error import ArgumentError, DiskError, UserError

FORMAT = 1
RECORD, _PLAN, _PARTS, _LOCK = "prepared.json", "plan.json", "parts", "lock"
_CLEARED = "cleared"  # the last of them, while a folder is cleared
_PARTIAL = partial_path(Path(RECORD)).suffix
_NEW = ".new"  # folder of the data that will replace others
# Files of data that are not complete, of which there is no record.
_OWN = re.compile(
    r"((ids|tags|labels|answers|alignment|features|source|target)"
    r"\.(offsets|values|rows|model)"
    r"|(train|validation)\.(names|numbers|texts)"
    r"|validation\.(jsonl|sizes|source|target|text|files\.(offsets|values))"
    r"|network\.npz|plan\.json|prepared\.json)"
    rf"({re.escape(_PARTIAL)}|\.[0-9a-f]{{32}})?"  # of `replace_file`
)
_NUMBERS = re.compile("u?int(8|16|32|64)|float(16|32|64)")  # of arrays
MODELS = ("source.model", "target.model")  # of tokenizers
# Of a plan: how the work is divided, on which the finished data do not depend.
_WORK = ("part_size",)  # options
_OF_DATA = ("options", "files", "others")  # the rest is of the work
_OTHERWISE = "Use --overwrite, or a different folder."
_RESUMES = "What is finished is kept: the same command resumes."
_NEEDS = (
    "Preparing needs a file system with flock, which keeps a second process "
    "from writing the same folder."
)


class PreparedFolder(os.PathLike):
    """A folder in which data are prepared, or have been.

    Args:
        path: of the folder, which may be missing.
        replaces: whether data that are there already are replaced, as soon as
            others are complete: see `locked`.
    """

    def __init__(self, path: str | os.PathLike, replaces: bool = False):
        self.path = Path(path)
        self.parts = self.path / _PARTS
        self._replaces = replaces

    @classmethod
    def of(cls, path: str | os.PathLike) -> "PreparedFolder":
        """The folder at a path, which may be a `PreparedFolder` already."""
        return path if isinstance(path, cls) else cls(path)

    def __fspath__(self):
        return os.fspath(self.path)

    @property
    def is_complete(self) -> bool:
        """Whether the data are ready."""
        return (self.path / RECORD).is_file() and not self._replaces

    @property
    def is_begun(self) -> bool:
        """Whether data have been prepared here, completely or not."""
        return any((self.path / name).is_file() for name in (RECORD, _PLAN))

    def lock(self):
        """Creates the folder, and locks it until `unlock`.

        Raises:
            DataError: it holds other files, or another process prepares it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be used: {error.strerror}."
            ) from None
        names = {file.name for file in self.path.iterdir()}
        names -= {_LOCK, partial_path(Path(_PLAN)).name}
        if names and not self.is_begun and _CLEARED not in names:
            raise DataError(
                f"{self.path} is not prepared data: it holds {min(names)}. Use "
                "a different folder."
            )
        if holder := lock(self.path / _LOCK, _NEEDS, "folder"):
            raise DataError(f"{self.path} is being prepared by {holder}.")
        if names and not self.is_begun:  # a process that cleared it was killed
            self.clear()

    @contextlib.contextmanager
    def locked(self) -> Iterator["PreparedFolder"]:
        """Locks the folder while it is prepared, see `lock`.

        Complete data are only read. If the data or the options of a new folder
        are wrong, nothing is left that would refuse others. Where complete data
        are replaced, the folder that it gives is one in it, whose files take
        their place in the end.

        Raises:
            ReadError: a file cannot be read after some parts are finished.
            DiskError: the disk is full.
        """
        if self.is_complete:
            yield self
            return
        if not (self.path / RECORD).is_file():
            with self._locked():
                yield self
            return
        self.lock()
        try:
            new = PreparedFolder(self.path / _NEW, self._replaces)
            with new._locked():
                yield new
            self.clear(new.path)
            self._replaces = False
        finally:
            self.unlock()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        is_new = self.plan() is None
        self.lock()
        try:
            yield
        except DataError as error:
            if isinstance(error, ReadError) and any(self.parts.glob("*")):
                raise ReadError(f"{error} {_RESUMES}") from None
            if is_new and not self._replaces:
                self.clear()
            raise
        except OSError as error:
            if error.errno not in DiskError.errnos:
                raise
            raise DiskError(
                f"{self.path} cannot be written: {error.strerror}. {_RESUMES}"
            ) from error
        finally:
            self.unlock()

    def unlock(self):
        """Lets others prepare here; removes the folder if it is empty."""
        unlock(self.path / _LOCK)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def clear(self, new: Path | None = None):
        """Deletes what is prepared here; first what makes it complete.

        Files of others stay.

        Args:
            new: a folder in it with complete data, which take its place.
        """
        cleared = self.path / _CLEARED
        own = self._recorded()
        for name in (_PLAN, RECORD):
            with contextlib.suppress(FileNotFoundError):
                (self.path / name).replace(cleared)
        for file in self.path.iterdir():
            if file.is_dir():
                if file.name in (_PARTS, _NEW) and file != new:
                    shutil.rmtree(file)
            elif file.name in own or _OWN.fullmatch(file.name):
                file.unlink()
        if new is not None:
            for file in sorted(new.iterdir(), key=lambda f: f.name == RECORD):
                file.replace(self.path / file.name)
            shutil.rmtree(new)
        cleared.unlink(missing_ok=True)

    def _recorded(self) -> Collection[str]:
        """The names of the complete data, also of those half cleared."""
        for name in (RECORD, _CLEARED):
            with contextlib.suppress(UserError):
                found = read_json(self.path / name)
                if isinstance(found.get("files"), dict) and "format" in found:
                    return found["files"]
        return ()

    def plan(self) -> dict[str, Any] | None:
        """The plan that is being followed, or None."""
        path = self.path / _PLAN
        is_followed = path.is_file() and not self._replaces
        return read_json(path) if is_followed else None

    def follow(
        self,
        kind: str,
        options: dict[str, Any],
        paths: dict[str, list[str]],
        others: str = "",
        read: Callable[[], tuple[dict[str, Any], dict[str, str]]] | None = None,
    ) -> dict[str, Any]:
        """The plan to follow: a new one, or that of the same data and options.

        If the data are complete, what only resuming needs is deleted.
        Otherwise the size of the parts is that of the plan, not that of
        `options`, which a different version of kseq may have changed.

        Args:
            kind: of the data.
            options: for JSON; "part_size" is one of them.
            paths: of the files that are read, by what they are for.
            others: identifies files that are not read for it.
            read: function for a new plan: what else is in it, and the sha256
                of the files that were read for it.

        Raises:
            DataError: the folder is prepared from other data, or with other
                options.
        """
        plan = self.record(kind)["plan"] if self.is_complete else self.plan()
        if plan is None:
            more, hashes = read() if read else ({}, {})
            files = {
                name: [
                    _file_identity(path, hashes.get(path) or content_hash(path))
                    for path in each
                ]
                for name, each in paths.items()
            }
            plan = {"options": options, "files": files, "others": others}
            plan = as_read(plan | more)
            if self._replaces:
                self._replaces = False
                # The same plan is resumed.
                if self.is_complete or self.plan() != plan:
                    self.clear()
            atomic_write(self.path / _PLAN, to_json(plan))
        self._refuse_other_options(plan, options)
        self._refuse_other_files(plan, paths, others)
        if self.is_complete:
            self.remove_parts()
        else:
            self.parts.mkdir(exist_ok=True)
        return plan

    def _refuse_other_options(self, plan: dict, options: dict[str, Any]):
        """Raises DataError unless a plan has the same options."""
        for key, now in as_read(options).items():
            if key in _WORK:
                continue
            known = plan["options"].get(key)
            if key == "tokenizers" and self._has_models(now.get("kept")):
                continue  # they may have been trained here
            if known != now:
                raise DataError(
                    f"{self.path} was prepared with different options: {key} "
                    f"was {known}, now {now}. {_OTHERWISE}"
                )

    def _has_models(self, hashes) -> bool:
        """Whether the complete data have these tokenizers."""
        if not hashes or not self.is_complete:
            return False
        files = self.record()["files"]
        return hashes == [
            files.get(name, {}).get("sha256") for name in MODELS[: len(hashes)]
        ]

    def _refuse_other_files(self, plan, paths, others):
        """Raises DataError unless files are those that a plan is made from."""
        are_others = DataError(
            f"{self.path} was prepared from different files. {_OTHERWISE}"
        )
        groups = [
            (paths.get(name, []), plan["files"].get(name, []))
            for name in sorted({*paths, *plan["files"]})
        ]
        if any(len(found) != len(known) for found, known in groups):
            raise are_others
        for found, known in groups:
            for path, identity in zip(found, known, strict=True):
                if not _is_same_file(path, identity):
                    raise DataError(
                        f"{path} is not the file that {self.path} was prepared "
                        f"from, or has changed since. {_OTHERWISE}"
                    )
        if plan.get("others", "") != others:
            raise are_others

    def finish(self, record: dict[str, Any]):
        """Makes the folder complete, and deletes what only resuming needs.

        Args:
            record: of the data; sizes and sha256 of all files are added. Of
                the plan, what only resuming needs is left out.
        """
        names = sorted(
            file.name
            for file in self.path.iterdir()
            if file.is_file()
            and file.name not in (_PLAN, _LOCK)
            and file.suffix != _PARTIAL  # of a process that was killed
        )
        files = {name: _identity(self.path / name) for name in names}
        if "plan" in record:
            record = {**record, "plan": _without_work(record["plan"])}
        record = {"format": FORMAT, **record, "files": files}
        atomic_write(self.path / RECORD, to_json(record))
        self.remove_parts()

    def remove_parts(self):
        """Deletes what only resuming needs."""
        shutil.rmtree(self.parts, ignore_errors=True)
        (self.path / _PLAN).unlink(missing_ok=True)

    def record(self, kind: str | None = None) -> dict[str, Any]:
        """What `finish` has written, with the sizes of all files checked.

        Args:
            kind: of the data; by default any.

        Raises:
            DataError: there is no such data, it is incomplete, or of a newer
                version.
        """
        if not self.is_complete:
            raise DataError(
                f"{self.path} is not complete: start the same `kseq prepare` "
                "again, and it resumes."
                if self.is_begun
                else f"{self.path} is not prepared data: it has no {RECORD}."
            )
        record = read_json(self.path / RECORD)
        files = recorded_files(record, self.path / RECORD)
        if record.get("format") != FORMAT:
            raise DataError(
                f"{self.path} was written by a different version of kseq "
                f"(format {record.get('format')!r:.20}; this one reads "
                f"{FORMAT}). Prepare it again, or upgrade kseq."
            )
        if kind is not None and record.get("kind") != kind:
            raise DataError(
                f"{self.path} holds {record.get('kind')!r:.50}; expected "
                f"{kind!r}."
            )
        for name, identity in files.items():
            self._check_size(name, identity)
        return record

    def digest(self) -> str:
        """The sha256 of the names and the content of all files.

        Raises:
            DataError: see `record`.
        """
        files = self.record()["files"]
        return hashlib.sha256(to_json(files).encode()).hexdigest()

    @contextlib.contextmanager
    def opened(self, kind: str | None = None) -> Iterator[dict[str, Any]]:
        """Gives `record(kind)` to open the data with.

        Raises:
            DataError: see there; or the record lacks what is asked of it.
        """
        record = self.record(kind)
        try:
            yield record
        except ArgumentError as error:  # of what is made with the record
            raise DataError(f"{self.path}: {error}") from None
        except UserError:
            raise
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
        ):
            raise DataError(f"{self.path} is broken: {RECORD}.") from None

    def array(
        self, record: dict[str, Any], name: str
    ) -> tuple[Path, str, tuple[int, ...]]:
        """The path, dtype and shape of an array of `record`, to open it."""
        array = record["arrays"][name]
        dtype, shape = array["dtype"], tuple(array["shape"])
        is_shape = shape and all(type(n) is int and n >= 0 for n in shape)
        if not is_shape or not _NUMBERS.fullmatch(dtype):
            raise ValueError(f"{dtype=}, {shape=}")
        return self.path / name, dtype, shape

    def _check_size(self, name, identity):
        path = self.path / name
        found = path.stat().st_size if path.is_file() else None
        expected = identity.get("bytes") if isinstance(identity, dict) else None
        if found is None:
            raise DataError(f"{self.path} is broken: {name} is missing.")
        if found != expected:
            raise DataError(
                f"{self.path} is broken: {name} has {found} bytes; expected "
                f"{expected}."
            )

    def verify(self):
        """Reads all files, and raises DataError if one has changed."""
        for name, identity in self.record()["files"].items():
            if _identity(self.path / name) != identity:
                raise DataError(
                    f"{self.path} is broken: the content of {name} has changed."
                )


def recorded_files(
    record: dict[str, Any], path: str | os.PathLike
) -> dict[str, Any]:
    """The sizes and hashes of the files of prepared data, by their names.

    Args:
        record: the content of `prepared.json`.
        path: of `prepared.json`, for messages.

    Raises:
        DataError: they are missing, or one is not in the folder of the record.
    """
    files = record.get("files")
    if not isinstance(files, dict) or not all(map(_is_inside, files)):
        raise DataError(f"{path} is broken.")
    return files


def _is_inside(name):
    is_file = name not in ("", ".", "..", RECORD)
    return is_file and "/" not in name and "\0" not in name


def is_prepared(path: str | os.PathLike) -> bool:
    """Whether a path is that of a folder where data are prepared."""
    return os.path.isdir(path) and PreparedFolder(path).is_begun


def prepared_folder(
    train: str | os.PathLike | Sequence[str | os.PathLike] | None,
) -> str | os.PathLike | None:
    """The folder of prepared data that `train` is, or None."""
    if train is None:
        return None
    paths = [train] if isinstance(train, str | os.PathLike) else list(train)
    return paths[0] if len(paths) == 1 and is_prepared(paths[0]) else None


def _file_identity(path, sha256) -> dict[str, Any]:
    """What identifies a file that was read, whose content has a sha256."""
    found = os.stat(path)
    return {
        "path": os.path.abspath(path),
        "bytes": found.st_size,
        "modified": found.st_mtime_ns,
        "kind": kind_of_content(path),
        "sha256": sha256,
    }


def _is_same_file(path, identity) -> bool:
    """Whether a file has the content that was read; a moved file has.

    It is read unless its path, size and time are the same.
    """
    found = _file_identity(path, identity["sha256"])
    if found == identity:
        return True
    if any(found[key] != identity[key] for key in ("kind", "bytes")):
        return False
    return content_hash(path) == identity["sha256"]


def content_hash(path: str | os.PathLike) -> str:
    """The sha256 of the content of a file that is read for it alone."""
    name = escaped_line(os.path.basename(path))
    return sha256_of(path, f"Reading {name}")


def _without_work(plan):
    """What a plan says of the data."""
    found = {key: plan[key] for key in _OF_DATA}
    options = found["options"].items()
    found["options"] = {
        key: value for key, value in options if key not in _WORK
    }
    return found


def _identity(path):
    return {"bytes": path.stat().st_size, "sha256": content_hash(path)}
