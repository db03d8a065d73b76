"""TensorFlow Serving's REST API, as an ASGI application.

Reference: TensorFlow Serving 2.20, its RESTful API and the sources of its HTTP
server.
"""

import asyncio
import re
import time
from urllib.parse import unquote

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from kseq.files.model_path import version_number
from kseq.server.access_record import (
    MALFORMED,
    access_record,
    request_id_of,
)
from kseq.server.allowed_hosts import AllowedHosts
from kseq.server.body_memory import BodyMemory, request_memory
from kseq.server.event_stream import EventStream, event, unless_disconnected
from kseq.server.json_answers import (
    classified_bytes,
    json_bytes,
    predicted_bytes,
)
from kseq.server.json_bodies import json_memory
from kseq.server.json_requests import read_classify, read_predict
from kseq.server.model_descriptions import (
    metadata_object,
    readiness,
    status_object,
)
from kseq.server.openai_answers import (
    error_object,
    models_object,
    whole_answer,
)
from kseq.server.openai_answers import events as openai_events
from kseq.server.openai_requests import (
    CHAT,
    COMPLETION,
    answers_text,
    first_tokens,
    read_text_request,
    signature_request,
)
from kseq.server.page import Page
from kseq.server.request_body import read_body
from kseq.server.request_error import RequestError
from kseq.server.streamed_answer import streamed_answer

_MODEL = r"/v1/models/(?P<name>[^/:]+)"
_VERSION = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(
    rf"{_MODEL}{_VERSION}:(?P<verb>predict|classify|regress)", re.I
)
_GET = re.compile(rf"{_MODEL}{_VERSION}(?P<metadata>/metadata)?", re.I)
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.I | re.S)
_HEALTH = "/healthz"
_READY = "/readyz"
_METRICS = "/monitoring/prometheus/metrics"
_OPENAI = {f"/v1/{CHAT}", f"/v1/{COMPLETION}"}
_MODEL_FOUND = "kseq.model"  # in the scope of a request
_VERSION_FOUND = "kseq.version"
_JSON = "application/json"
_RETRY_AFTER = "1"  # seconds
_SMALL = 8192  # bytes or values, which take less than a thread's switch
_PROMETHEUS = "text/plain; version=0.0.4"


class RestApp:
    """The ASGI application that `kseq serve` runs.

    Args:
        store: `ModelStore`.
        batcher: `Batcher`.
        hosts: names of the host that a request may give, see `AllowedHosts`.
        body_limit: int, bytes of a body, also after decompression.
        timeout: float, seconds until a request times out, and until its body
            must have arrived.
        memory: `BodyMemory`; 16 times `body_limit` by default, at least 512
            MiB.
        log: callable of a dict for each request, without its text.
        metrics: callable that returns Prometheus' text, bytes; or None.
        unready: callable that returns why the server must not get requests,
            or "".
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
        log=lambda record: None,
        metrics=None,
        unready=lambda: "",
    ):
        self.store = store
        self.batcher = batcher
        self.hosts = AllowedHosts(hosts)
        self.body_limit = body_limit
        self.timeout = timeout
        self.memory = memory or BodyMemory(request_memory(body_limit))
        self.log = log
        self.metrics = metrics
        self.unready = unready
        self.page = Page(store)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            raise RuntimeError(f"Received a request of type {scope['type']!r}")
        scope = _in_origin_form(scope)
        start, response = time.perf_counter(), None
        sent = dict(scope["headers"]).get(b"x-request-id", b"")
        request_id = request_id_of(sent.decode("latin-1"))
        with self.memory.hold(_client(scope)) as hold:
            try:
                response = await self._respond(scope, receive, hold)
            except ClientDisconnect:
                pass  # and so nobody waits for an answer
            except RequestError as error:
                response = _error(str(error), error.status)
            except Exception:
                response = _error("Internal error", 500)
                raise
            finally:
                if response is not None:
                    response.headers["x-request-id"] = request_id
                    if _has_two_lengths(scope):
                        response.headers["connection"] = "close"
                if isinstance(response, EventStream):
                    await response(scope, receive, send)
                    self._log(scope, response, start, request_id)
                else:
                    self._log(scope, response, start, request_id)
                    if response is not None:
                        await response(scope, receive, send)

    def _log(self, scope, response, start, request_id):
        is_malformed = MALFORMED in scope.get("state", ())
        status, size = (400 if is_malformed else 499), 0
        if isinstance(response, EventStream):
            status, size = response.status, response.size
        elif response is not None:
            status = response.status_code
            size = len(response.body) if scope["method"] != "HEAD" else 0
        self.log(
            access_record(
                start,
                model=self._known_model(scope),
                version=scope.get(_VERSION_FOUND),
                request_id=request_id,
                client=_client(scope) or "",
                method=scope["method"],
                path=scope["path"],
                status=status,
                bytes=size,
            )
        )

    def _known_model(self, scope):
        path = _path(scope)
        found = _POST.fullmatch(path) or _GET.fullmatch(path)
        name = unquote(found["name"]) if found else scope.get(_MODEL_FOUND, "")
        return name if name in self.store.folders else ""

    async def _respond(self, scope, receive, hold):
        method, path = scope["method"], _path(scope)
        is_read = method in ("GET", "HEAD")
        if is_read and path == _HEALTH:  # with any Host, as probes send it
            is_ready = self.store.is_ready
            return _probe(is_ready, "ok" if is_ready else "loading")
        if is_read and path == _READY:
            models = self.store.readiness()
            is_ready, reason = readiness(models, self.unready())
            word = "ready" if is_ready else "not ready"
            return _probe(is_ready, f"{word}: {reason}")
        self.hosts.check(scope)
        if path == _METRICS and method == "GET" and self.metrics:
            return Response(self.metrics(), media_type=_PROMETHEUS)
        if response := self.page.respond(method, path):
            return response
        if not re.match("/v1/", path, re.I):
            return _error("Not found", 404)
        if method == "POST" and path in _OPENAI:
            return await self._complete(path, scope, receive, hold)
        if method == "POST" and (found := _POST.fullmatch(path)):
            return await self._answer(found, scope, receive, hold)
        if method == "GET" and (found := _GET.fullmatch(path)):
            return self._describe(found, scope)
        if method == "GET" and re.fullmatch("/v1/models", path, re.I):
            return _json(models_object(self._models_of_text()))
        raise RequestError(f"Malformed request: {method} {path}")

    def _models_of_text(self):
        """The names of the models that answer a text with a text."""
        newest = map(self.store.newest, self.store.folders)
        return [each.name for each in newest if each and answers_text(each)]

    async def _complete(self, path, scope, receive, hold):
        """Answers a request of OpenAI's API."""
        try:
            body = await self._read_json(scope, receive, hold)
            is_chat = path == f"/v1/{CHAT}"
            asked = await _aside(len(body), read_text_request, body, is_chat)
            scope[_MODEL_FOUND] = asked.model
            servable = self._find((asked.model, None, None), scope)
            request = signature_request(asked, servable)
            parts = streamed_answer(
                *(self.batcher, servable, request, self.timeout),
                more=first_tokens(asked, request),
                most=asked.max_tokens,
            )
            if asked.is_stream:
                chunks = openai_events(asked, parts)
                first = await unless_disconnected(anext(chunks), receive)
                return EventStream(first, chunks, _openai_error_event)
            whole = whole_answer(asked, parts)
            content = await unless_disconnected(whole, receive)
            return Response(content, media_type=_JSON)
        except RequestError as error:
            return _refused(error_object(error), error.status)

    async def _read_json(self, scope, receive, hold):
        """The body of a request, with the memory that parsing it takes."""
        body = await read_body(
            scope, receive, self.body_limit, self.timeout, hold
        )
        most = self.memory.limit // 4
        hold(await _aside(len(body), json_memory, body, most))
        return body

    async def _answer(self, found, scope, receive, hold):
        servable = self._find(_model(found), scope)
        body = await self._read_json(scope, receive, hold)
        response = await self._answer_body(found, servable, body, receive)
        hold(len(response.body))  # until it is sent
        return response

    async def _answer_body(self, found, servable, body, receive):
        verb = found["verb"].lower()
        if verb == "regress":
            raise RequestError("Expected a signature of regression")
        read = read_classify if verb == "classify" else read_predict
        request = await _aside(len(body), read, body, servable.signatures)
        if request.is_stream:
            return await self._stream(servable, request, receive)
        answer = self.batcher.answer(
            servable, request.signature, request.inputs, self.timeout
        )
        outputs = await unless_disconnected(answer, receive)
        size = sum(value.size for value in outputs.values())
        if verb == "classify":
            content = await _aside(size, classified_bytes, outputs)
        else:
            content = await _aside(
                size, predicted_bytes, outputs, request.is_row
            )
        return Response(content, media_type=_JSON)

    async def _stream(self, servable, request, receive):
        """An event for each part of the answer, and one for all of it.

        An error before the first part is a response like any other.
        """
        events = _events(
            streamed_answer(self.batcher, servable, request, self.timeout),
            request.is_row,
        )
        first = await unless_disconnected(anext(events), receive)
        return EventStream(first, events, _error_event)

    def _describe(self, found, scope):
        model = _model(found)
        if not found["metadata"]:
            return _json(status_object(self.store.status(*model)))
        return _json(metadata_object(self._find(model, scope)))

    def _find(self, model, scope):
        servable = self.store.find(*model)
        scope[_VERSION_FOUND] = servable.version  # for the log
        return servable


def _in_origin_form(scope):
    """The scope of a request whose target has a host, as proxies get it.

    Reference: RFC 9112, section 3.2.2.
    """
    found = _ABSOLUTE.fullmatch(scope.get("raw_path") or b"")
    if found is None:
        return scope
    host, path = found[1], found[2] or b"/"
    others = [header for header in scope["headers"] if header[0] != b"host"]
    return {
        **scope,
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "headers": [*others, (b"host", host)],
    }


def _has_two_lengths(scope):
    """Whether a proxy may see another end of the body than this server.

    Reference: RFC 9112, section 6.1.
    """
    names = {name for name, _ in scope["headers"]}
    return {b"content-length", b"transfer-encoding"} <= names


async def _aside(size, function, *arguments):
    """In a thread, if it is large: it must not block the others."""
    if size <= _SMALL:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def _client(scope):
    """The address of a client; None if it is not known."""
    return (scope.get("client") or (None,))[0]


async def _events(parts, is_row):
    """The events of an answer: its parts, then what `:predict` answers."""
    async for part in parts:
        if part.text:
            yield event(json_bytes({"text": part.text}))
        if part.outputs is not None:
            yield event(predicted_bytes(part.outputs, is_row))


def _openai_error_event(error):
    return event(json_bytes(error_object(error)))


def _error_event(error):
    return event(json_bytes({"error": str(error)}))


def _path(scope):
    """As it was sent, without its query: parts are decoded one by one."""
    raw = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def _model(found):
    """(name, version, label) of a route."""
    label = found["label"]
    return (
        unquote(found["name"]),
        _version(found["version"]),
        None if label is None else unquote(label),
    )


def _version(text):
    if text is None:
        return None
    version = version_number(text)
    if version is None:
        raise RequestError(f"Failed to convert version: {text:.30} to numeric.")
    return version


def _probe(is_ready, text):
    status = 200 if is_ready else 503
    return Response(f"{text}\n", status, media_type="text/plain")


def _json(value, status=200):
    return Response(json_bytes(value), status, media_type=_JSON)


def _error(message, status):
    text = message.encode("utf-8", "replace").decode()
    return _refused({"error": text}, status)


def _refused(value, status):
    response = _json(value, status)
    if status == 408:  # the rest of its body is not a request
        response.headers["connection"] = "close"
    if status in (429, 503):
        response.headers["retry-after"] = _RETRY_AFTER
    return response
