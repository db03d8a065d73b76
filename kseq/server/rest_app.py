"""TensorFlow Serving's REST API, as an ASGI application.

Reference: TensorFlow Serving 2.20, its RESTful API and the sources of its HTTP
server.
"""

import asyncio
import re
import time
from urllib.parse import unquote

from google.protobuf import json_format
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from kseq.server.body_memory import BodyMemory
from kseq.server.json_requests import (
    classifications,
    json_bytes,
    predictions,
    read_classify,
    read_predict,
)
from kseq.server.page import Page
from kseq.server.request_body import read_body
from kseq.server.request_error import RequestError

_MODEL = r"/v1/models/(?P<name>[^/:]+)"
_VERSION = r"(?:/versions/(?P<version>\d{1,18})|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(
    rf"{_MODEL}{_VERSION}:(?P<verb>predict|classify|regress)", re.I
)
_GET = re.compile(rf"{_MODEL}{_VERSION}(?P<metadata>/metadata)?", re.I)
_METRICS = "/monitoring/prometheus/metrics"
_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4"


class RestApp:
    """The ASGI application that `kseq serve` runs.

    Args:
        store: `ModelStore`.
        batcher: `Batcher`.
        hosts: names of the host that a request may give, as `localhost`; with
            "*" any.
        body_limit: int, bytes of a body, also after decompression.
        timeout: float, seconds until a request is given up, and until its
            body must have come.
        memory: `BodyMemory`; four times `body_limit` by default.
        log: callable of a dict for each request, which has no text of it.
        metrics: callable that returns Prometheus' text, bytes; None for none.
    """

    def __init__(
        self,
        store,
        batcher,
        *,
        hosts,
        body_limit=64 * 2**20,
        timeout=30.0,
        memory=None,
        log=None,
        metrics=None,
    ):
        self.store = store
        self.batcher = batcher
        self.hosts = {host.lower() for host in hosts}
        self.body_limit = body_limit
        self.timeout = timeout
        self.memory = memory or BodyMemory(4 * body_limit)
        self.log = log
        self.metrics = metrics
        self.page = Page(store)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            raise RuntimeError(f"Received a request of type {scope['type']!r}")
        start, response = time.perf_counter(), None
        try:
            response = await self._respond(scope, receive)
        except ClientDisconnect:
            pass  # and so nobody waits for an answer
        except RequestError as error:
            response = _error(str(error), error.status)
        except Exception:
            response = _error("Internal error", 500)
            raise
        finally:
            self._log(scope, response, time.perf_counter() - start)
            if response is not None:
                await response(scope, receive, send)

    def _log(self, scope, response, seconds):
        if self.log is None:
            return
        self.log(
            {
                "client": (scope.get("client") or ("",))[0],
                "model": self._known_model(scope),
                "method": scope["method"],
                "path": scope["path"],
                "status": response.status_code if response else 499,
                "bytes": len(response.body) if response else 0,
                "seconds": round(seconds, 6),
            }
        )

    def _known_model(self, scope):
        path = _path(scope)
        found = _POST.fullmatch(path) or _GET.fullmatch(path)
        name = unquote(found["name"]) if found else ""
        return name if name in self.store.folders else ""

    async def _respond(self, scope, receive):
        self._check_host(scope)
        method, path = scope["method"], _path(scope)
        if path == "/healthz" and method in ("GET", "HEAD"):
            return _health(self.store.is_ready)
        if path == _METRICS and method == "GET" and self.metrics:
            return Response(self.metrics(), media_type=_PROMETHEUS)
        if response := self.page.respond(method, path):
            return response
        if not re.match("/v1/", path, re.I):
            return _error("Not found", 404)
        if method == "POST" and (found := _POST.fullmatch(path)):
            return await self._answer(found, scope, receive)
        if method == "GET" and (found := _GET.fullmatch(path)):
            return self._describe(found)
        if method == "GET" and re.fullmatch("/v1/models", path, re.I):
            raise RequestError("Missing model name in request.")
        raise RequestError(f"Malformed request: {method} {path}")

    def _check_host(self, scope):
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = re.sub(r":\d*$", "", host)
        if "*" not in self.hosts and name not in self.hosts:
            raise RequestError(
                "The Host of the request is not allowed; see --allow-host",
                status=403,
            )

    async def _answer(self, found, scope, receive):
        servable = self.store.find(*_model(found))
        with self.memory.hold() as hold:
            body = await read_body(
                scope, receive, self.body_limit, self.timeout, hold
            )
            return await self._answer_body(found, servable, body, receive)

    async def _answer_body(self, found, servable, body, receive):
        verb = found["verb"].lower()
        if verb not in _VERBS:
            raise RequestError("Expected a signature of regression")
        read, answer = _VERBS[verb]
        # In a thread: a large one must not hold the others.
        request = await asyncio.to_thread(read, body, servable.signatures)
        outputs = await self._outputs(servable, request, receive)
        return await asyncio.to_thread(answer, request, outputs)

    async def _outputs(self, servable, request, receive):
        """What the batcher answers, unless the client leaves before."""
        answer = asyncio.ensure_future(
            self.batcher.answer(
                servable, request.signature, request.inputs, self.timeout
            )
        )
        left = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait(
                (answer, left), return_when=asyncio.FIRST_COMPLETED
            )
            if not answer.done():
                raise ClientDisconnect
            return answer.result()
        finally:
            left.cancel()
            answer.cancel()

    def _describe(self, found):
        name, version, label = _model(found)
        if not found["metadata"]:
            return _json(_status(self.store.status(name, version, label)))
        return _json(_metadata(self.store.find(name, version, label)))


async def _disconnected(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


def _path(scope):
    """As it was sent, without its query: parts are decoded one by one."""
    raw = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def _model(found):
    """(name, version, label) of a route."""
    version, label = found["version"], found["label"]
    return (
        unquote(found["name"]),
        None if version is None else int(version),
        None if label is None else unquote(label),
    )


def _status(versions):
    return {
        "model_version_status": [
            {
                "version": str(number),
                "state": status.state,
                "status": {
                    "error_code": status.error_code,
                    "error_message": status.error_message,
                },
            }
            for number, status in sorted(versions.items(), reverse=True)
        ]
    }


def _metadata(servable):
    signatures = {
        name: json_format.MessageToDict(
            definition,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for name, definition in servable.signatures.items()
    }
    return {
        "model_spec": {
            "name": servable.name,
            "signature_name": "",
            "version": str(servable.version),
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _health(is_ready):
    return Response(
        "ok\n" if is_ready else "loading\n",
        200 if is_ready else 503,
        media_type="text/plain",
    )


def _predicted(request, outputs):
    return _json(predictions(outputs, request.is_row))


def _classified(_, outputs):
    return _json(classifications(outputs))


def _json(value, status=200):
    return Response(json_bytes(value), status, media_type=_JSON)


def _error(message, status):
    text = message.encode("utf-8", "replace").decode()
    response = _json({"error": text}, status)
    if status == 408:  # the rest of its body is no request
        response.headers["connection"] = "close"
    return response


_VERBS = {
    "predict": (read_predict, _predicted),
    "classify": (read_classify, _classified),
}
