"""Which versions of which models are served."""

import os
import threading
import time
from typing import NamedTuple

from kseq.files.model_path import holds_version, version_folders
from kseq.server.request_error import RequestError
from kseq.server.servable import Servable
from kseq.server.version_files import check_inside, stamp_of
from kseq.terminal import single_line

_RETRY = 30.0  # seconds until a broken version is tried again
_LATE = 60.0  # seconds without a successful poll of a model: not ready
_ENDED = 16  # versions of a model whose folders are gone, in its status


class VersionStatus(NamedTuple):
    """The state of a version.

    Args:
        state: str, of TensorFlow Serving: "LOADING", "AVAILABLE" or "END".
        error_code: str, "OK" unless it could not be loaded.
        error_message: str.
    """

    state: str
    error_code: str = "OK"
    error_message: str = ""


class Readiness(NamedTuple):
    """Whether a model answers, and its folder is polled.

    Args:
        version: int, the newest version that answers, or None.
        seconds: float, since the last poll that could read its folder; None
            if none could.
        problem: str, why the last poll failed; "" if it did not.
        is_ready: bool.
    """

    version: int | None
    seconds: float | None
    problem: str
    is_ready: bool


class ModelStore:
    """The models of some folders, each in its newest version.

    A version is a child of the folder whose name is a number, and that has a
    `saved_model.pb`. The newest that can be loaded, and those that have a
    label, are served, the latter even if their folder is gone. A new one is
    loaded and warmed up before the old one is dropped. A broken one is tried
    again when its files change, or every 30 seconds. One with a link to a file
    outside the folder counts as broken.

    A disk error does not stop the server: it is shown in the status of the
    version, or reported by `poll` and `readiness`, and the next poll tries
    again. An error of one model does not affect the others.

    Args:
        folders: dict, name of the model -> `pathlib.Path`.
        labels: dict, (name of the model, label) -> number of a version.
        allow_ops: see `load_export`.
    """

    def __init__(self, folders, labels=None, allow_ops=()):
        self.folders = dict(folders)
        self.allow_ops = tuple(allow_ops)
        self.labels = dict(labels or {})
        self._served = {name: {} for name in folders}
        self._newest = dict.fromkeys(folders)
        self._status = {name: {} for name in folders}
        # Of each, number -> (its files, when it was tried).
        self._broken = {name: {} for name in folders}
        self._problems = dict.fromkeys(folders, "")
        self._polled = dict.fromkeys(folders)  # when that succeeded
        self._polling = threading.Lock()

    def poll(self):
        """Looks at the folders once, and loads and drops versions.

        Returns:
            list of str, what has changed.
        """
        with self._polling:
            before = self._lines()
            for name in self.folders:
                try:
                    self._poll(name)
                except Exception as error:  # the others are polled, too
                    self._problems[name] = _reason(error)
                else:
                    self._problems[name] = ""
                    self._polled[name] = time.monotonic()
            # Loading may have taken minutes, in which no poll was missed.
            for name, problem in self._problems.items():
                if not problem:
                    self._polled[name] = time.monotonic()
            return [line for line in self._lines() if line not in before]

    def close(self):
        """Drops all versions."""
        with self._polling:
            for served in self._served.values():
                served.clear()
            self._newest = dict.fromkeys(self.folders)

    @property
    def is_ready(self):
        """Whether each model has a version that answers."""
        return all(self._served.values())

    def readiness(self):
        """The `Readiness` of each model, a dict.

        A model is ready if it has a version that answers, and its folder could
        be read in the last minute, or a version of any model is being loaded,
        for which the folders of the others wait.
        """
        now = time.monotonic()
        found = {}
        is_loading = any(
            status.state == "LOADING"
            for versions in self._status.values()
            for status in list(versions.values())
        )
        for name in self.folders:
            newest, polled = self._newest[name], self._polled[name]
            seconds = None if polled is None else now - polled
            is_late = seconds is None or seconds > _LATE
            found[name] = Readiness(
                newest and newest.version,
                seconds,
                self._problems[name],
                newest is not None and (is_loading or not is_late),
            )
        return found

    def problem(self, name):
        """Why no version of a model answers, a str."""
        known = self._status[name]
        if self._problems[name] or not known:
            return self._problems[name] or "it has no version"
        return known[max(known)].error_message

    def newest(self, name):
        """The `Servable` of a model's newest version; None if it has none."""
        return self._newest.get(name)

    def find(self, name, version=None, label=None):
        """The `Servable` that a request asks for.

        Raises:
            RequestError: if it is not served.
        """
        if label is not None:
            version = self.labels.get((name, label))
            if version is None:
                raise RequestError(
                    f"Unrecognized servable version label: {label}"
                )
        if version is None:
            found, wanted = self.newest(name), f"Latest({name})"
        else:
            found = self._served.get(name, {}).get(version)
            wanted = f"Specific({name}, {version})"
        if found is None:
            raise RequestError(
                f"Servable not found for request: {wanted}", "NOT_FOUND"
            )
        return found

    def status(self, name, version=None, label=None):
        """The versions of a model, dict of number -> `VersionStatus`.

        If its folder cannot be read, the reason is in the status of the newest
        one.

        Raises:
            RequestError: if there is none.
        """
        if label is not None:
            version = self.find(name, label=label).version
        known = dict(self._status.get(name, {}))
        problem = self._problems.get(name)
        if problem and (newest := self._newest[name]):
            known[newest.version] = VersionStatus("AVAILABLE", "OK", problem)
        if version is not None:
            if version not in known:
                raise RequestError(
                    f"Could not find version {version} of model {name}",
                    "NOT_FOUND",
                )
            return {version: known[version]}
        if not known:
            reason = f": {problem}" if problem else ""
            raise RequestError(
                f"Could not find any versions of model {name}{reason}",
                "NOT_FOUND",
            )
        return known

    def _lines(self):
        lines = [
            f"{name}, version {number}: {status.state} {status.error_message}"
            for name, versions in self._status.items()
            for number, status in versions.items()
        ]
        problems = self._problems.items()
        return lines + [
            f"{name}: its folder cannot be polled: {problem}"
            for name, problem in problems
            if problem
        ]

    def _poll(self, name):
        folders = version_folders(self.folders[name])
        found = {
            number: path
            for number, path in folders.items()
            if self._is_there(name, number, path)
        }
        if found:
            self._update(name, found)
        self._forget(name, folders)

    def _is_there(self, name, version, path):
        """Whether a version exists, and can be read or answers."""
        try:
            return holds_version(path)
        except OSError as error:
            if version in self._served[name]:
                return True  # it answers without its files
            status = VersionStatus("END", "UNKNOWN", _reason(error))
            self._status[name][version] = status
            return False

    def _forget(self, name, folders):
        """Drops the state of versions whose folders are gone."""
        broken, status = self._broken[name], self._status[name]
        for version in set(broken) - set(folders):
            del broken[version]
        gone = [
            version
            for version in status
            if version not in folders and version not in self._served[name]
        ]
        for version in gone[:-_ENDED]:
            del status[version]

    def _update(self, name, found):
        served = self._served[name]
        labelled = {v for (of, _), v in self.labels.items() if of == name}
        wanted = {v for v in labelled if self._is_loaded(name, v, found)}
        for version in sorted(found, reverse=True):
            if self._is_loaded(name, version, found):
                self._newest[name] = self._served[name][version]
                wanted.add(version)
                break
        if not wanted:
            return  # a broken version does not end a served one
        if self._newest[name]:
            wanted.add(self._newest[name].version)
        for version in set(served) - wanted:
            del served[version]  # after the last request that has it
            self._status[name][version] = VersionStatus("END")

    def _is_loaded(self, name, version, found):
        """Whether a version answers, after an attempt to load it."""
        if version in self._served[name]:
            return True
        if version not in found:
            return False
        path, status = found[version], self._status[name]
        files, tried = self._broken[name].get(version, (None, 0.0))
        now = time.monotonic()
        if files == (files_now := stamp_of(path)) and now - tried < _RETRY:
            return False
        status[version] = VersionStatus("LOADING")
        try:
            check_inside(self.folders[name], path)
            self._served[name][version] = Servable(name, path, self.allow_ops)
        except Exception as error:  # of many kinds, whatever is broken
            status[version] = VersionStatus("END", "UNKNOWN", _reason(error))
            self._broken[name][version] = files_now, now
            return False
        self._broken[name].pop(version, None)
        status[version] = VersionStatus("AVAILABLE")
        return True


def _reason(error):
    """One line of text that can be encoded."""
    text = f"{error}".partition("\n")[0] or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        names = [os.fsdecode(error.filename)] if error.filename else []
        text = ": ".join([*names, error.strerror])
    return single_line(text).encode("utf-8", "replace").decode()
