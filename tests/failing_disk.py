"""A disk on which some paths fail, as those of a network do."""

import errno
import os

ERRORS = ["EACCES", "ESTALE", "EIO", "ENOENT", "ETIMEDOUT", "ELOOP"]


class FailingDisk:
    """Makes the functions of `os` fail for some paths.

    Attributes:
        errors: dict, path -> name of an error; it holds for all in the path.
    """

    def __init__(self, monkeypatch):
        self.errors = {}
        for name in ("stat", "lstat", "listdir", "scandir"):
            replaced = self._failing(getattr(os, name))
            monkeypatch.setattr(os, name, replaced)

    def _failing(self, function):
        def call(path=".", *args, **options):
            text = os.fspath(path) if not isinstance(path, int) else ""
            for failing, name in self.errors.items():
                if f"{text}/".startswith(f"{failing}/"):
                    code = getattr(errno, name)
                    raise OSError(code, os.strerror(code), text)
            return function(path, *args, **options)

        return call
