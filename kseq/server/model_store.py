"""Which versions of which models are served."""

import threading
import time
from typing import NamedTuple

from kseq.model_path import versions
from kseq.server.request_error import RequestError
from kseq.server.servable import Servable
from kseq.user_error import UserError

_RETRY = 30.0  # seconds until a broken version is tried again


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


class ModelStore:
    """The models of some folders, each in its newest version.

    A version is a child of the folder whose name is a number, and that has a
    `saved_model.pb`. The newest that can be loaded is served, and those that
    have a label. A new one is loaded and warmed up before the old one is
    dropped. A broken one is tried again when its files change, or every 30
    seconds. One with a link to a file outside of the folder counts as broken.

    Args:
        folders: dict, name of the model -> `pathlib.Path`.
        labels: dict, (name of the model, label) -> number of a version.
    """

    def __init__(self, folders, labels=None):
        self.folders = dict(folders)
        self.labels = dict(labels or {})
        self._served = {name: {} for name in folders}
        self._newest = dict.fromkeys(folders)
        self._status = {name: {} for name in folders}
        self._broken = {}  # path -> (its files, when it was tried)
        self._polling = threading.Lock()

    def poll(self):
        """Looks at the folders once, and loads and drops versions.

        Returns:
            list of str, what has changed.
        """
        with self._polling:
            before = self._lines()
            for name, folder in self.folders.items():
                if found := versions(folder):
                    self._update(name, found)
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

        Raises:
            RequestError: if there is none.
        """
        if label is not None:
            version = self.find(name, label=label).version
        known = dict(self._status.get(name, {}))
        if version is not None:
            if version not in known:
                raise RequestError(
                    f"Could not find version {version} of model {name}",
                    "NOT_FOUND",
                )
            return {version: known[version]}
        if not known:
            raise RequestError(
                f"Could not find any versions of model {name}", "NOT_FOUND"
            )
        return known

    def _lines(self):
        return [
            f"{name}, version {number}: {status.state} {status.error_message}"
            for name, versions in self._status.items()
            for number, status in versions.items()
        ]

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
            return  # what is broken takes nothing down
        for version in set(served) - wanted:
            del served[version]  # after the last request that has it
            self._status[name][version] = VersionStatus("END")

    def _is_loaded(self, name, version, found):
        """Whether a version answers, after an attempt to load it."""
        if version not in found:
            return False
        if version in self._served[name]:
            return True
        path, status = found[version], self._status[name]
        files, tried = self._broken.get(path, (None, 0.0))
        now = time.monotonic()
        if files == (files_now := _files(path)) and now - tried < _RETRY:
            return False
        status[version] = VersionStatus("LOADING")
        try:
            _check_inside(self.folders[name], path)
            self._served[name][version] = Servable(name, path)
        except Exception as error:  # of many kinds, whatever is broken
            reason = f"{error}".partition("\n")[0] or type(error).__name__
            status[version] = VersionStatus("END", "UNKNOWN", reason)
            self._broken[path] = files_now, now
            return False
        self._broken.pop(path, None)
        status[version] = VersionStatus("AVAILABLE")
        return True


def _check_inside(folder, path):
    """UserError if a version has files that are not in its folder."""
    base = folder.resolve()
    for file in (path, *path.rglob("*")):
        if not file.resolve().is_relative_to(base):
            raise UserError(f"{file} is a link to what is not in {folder}")


def _files(path):
    """A stamp of the files of a version, which changes when it is written."""
    found = []
    for file in sorted(path.rglob("*")):
        try:
            facts = file.stat()
        except OSError:
            continue
        found.append((str(file), facts.st_size, facts.st_mtime_ns))
    return found
