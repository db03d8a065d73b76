"""The web page at `/`: its files, and its description of the models."""

import json
from pathlib import Path

from starlette.responses import Response

from kseq.answers import types_of_export
from kseq.files.regular_file import read_regular
from kseq.server.request_error import RequestError

_FOLDER = Path(__file__).with_name("static")
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; media-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_EXACT = 2**53 - 1  # JavaScript rounds larger numbers
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class Page:
    """Serves `/` and the files that the page loads, but not predictions.

    Args:
        store: `ModelStore`.
    """

    def __init__(self, store):
        self.store = store
        self._files = _read_files()

    def respond(self, method, path):
        """The response to a request; None for any other path.

        Args:
            method: str, of HTTP.
            path: str, as it was sent.
        """
        if method not in ("GET", "HEAD"):
            return None
        if path == "/page/models.json":
            content = json.dumps({"models": self._models()}).encode()
            return _response(content, "application/json")
        if path in self._files:
            return _response(*self._files[path])
        return None

    def _models(self):
        models = (self._model(name) for name in self.store.folders)
        return [model for model in models if model]

    def _model(self, name):
        """The description of a model for the page; None if none is served."""
        newest = self.store.newest(name)
        if newest is None:
            return None
        signatures = {
            key: signature
            for key, signature in sorted(newest.signatures.items())
            if not key.startswith("__")
        }
        return {
            "name": name,
            "versions": self._versions(name),
            "signatures": list(signatures),
            "inputs": {key: sorted(s.inputs) for key, s in signatures.items()},
            "outputs": {
                key: sorted(s.outputs) for key, s in signatures.items()
            },
            "streams": newest.streamed,
            "sample_rate": _sample_rate(newest.path),
            **_modules(newest.signatures),
        }

    def _versions(self, name):
        """The versions that answer, the newest first."""
        try:
            known = self.store.status(name)
        except RequestError:
            return []
        numbers = [n for n, of in known.items() if of.state == "AVAILABLE"]
        numbers.sort(reverse=True)
        return [n if n <= _EXACT else f"{n}" for n in numbers]


def _read_files():
    """dict, path -> content and media type."""
    files = {
        f"/page/{file.name}": (file.read_bytes(), _TYPES[file.suffix])
        for file in _FOLDER.iterdir()
        if file.suffix in _TYPES
    }
    files["/"] = files.pop("/page/index.html")
    return files


def _modules(signatures):
    """The modules of the page that show a model and read its input."""
    types = types_of_export(signatures)
    if types is None:
        return {"view": "form", "input": ""}
    source, answer = types
    view = answer.page_view or source.page_view
    if answer.page_view and not source.page_input:
        view = "form"  # there is nothing that could read its input
    return {"view": view, "input": source.page_input}


def _sample_rate(version):
    """The sample rate of an export's recordings; None if it is not known."""
    try:
        text = read_regular(version / "assets.extra" / "kseq.json")
        rate = json.loads(text.decode("utf-8"))["preprocessor"]["sample_rate"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return rate if type(rate) is int and rate > 0 else None


def _response(content, media_type):
    return Response(content, media_type=media_type, headers=_HEADERS)
