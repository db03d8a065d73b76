"""Mutated requests: no status 500, no traceback, no hang, no gibibyte."""

import asyncio
import base64
import contextlib
import gzip
import http.client
import json
import logging
import math
import random
import resource
import socket
import threading

import grpc
import pytest
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from kseq.commands.serve import _listening
from kseq.server import Batcher, RestApp, model_store, serve
from tests.server.grpc_client import METHODS, spec
from tests.server.tensor_protos import floats, text
from tests.slow import slow

MANY = "/v1/models/many"
GIBIBYTE = 2**20  # in KiB
SECONDS = 20  # which no answer takes
COUNTS = [30, slow(350)]


def b64(data):
    return {"b64": base64.b64encode(data).decode()}


BODIES = [
    {"instances": ["hello"]},
    {"instances": [{"text": "hello"}, {"text": b64(b"a" * 99)}]},
    {"signature_name": "to_bytes", "inputs": [b64(b"\xff" * 50)] * 3},
    {"signature_name": "several", "inputs": {"a": [[1, 2.5]], "b": [3]}},
    {"signature_name": "kinds", "instances": [1, -2, 3]},
    {"signature_name": "classify", "examples": [{"text": "a", "n": [1]}]},
    {"signature_name": "double_any", "inputs": [[[1.0, 2.0], [3.0, 4.0]]]},
]
PATHS = [
    *(f"{MANY}:predict", f"{MANY}:classify", f"{MANY}:regress", MANY),
    *(f"{MANY}/versions/2:predict", f"{MANY}/labels/stable:predict"),
    *(f"{MANY}/metadata", f"{MANY}/versions/1", "/healthz", "/readyz", "/"),
    *("/page/models.json", "/monitoring/prometheus/metrics"),
]
HEADERS = {
    "Host": ["localhost", "127.0.0.1:80", "[::1]", "evil.example", "["],
    "Content-Encoding": ["gzip", "identity", "br", "GZIP, gzip"],
    "Content-Type": ["application/json", "text/plain; charset=\xff"],
    "Origin": ["http://localhost", "null", "http://[", "\xff://"],
    "Sec-Fetch-Site": ["same-origin", "cross-site", ""],
    "X-Request-Id": ["abc", "a" * 4000, "\xe9", "%00"],
    "Expect": ["100-continue", "x"],
    "Connection": ["close", "keep-alive", "upgrade"],
    "Transfer-Encoding": ["chunked", "gzip, chunked"],
    "Content-Length": ["0", "5", "-1", "99999999999999999999", "1, 1"],
}
TOKENS = [
    *(
        b"\0",
        b"\xff",
        b"\r\n",
        b"%00",
        b"%2e%2e/",
        b"\\ud800",
        b'"',
        b"{",
        b"[",
    ),
    *(b"9" * 30, b"-1", b"1e999", b"NaN", b'{"b64": "="}', b"null", b"[[],[]]"),
    *(b"\x1f\x8b", b"[" * 500, b'{"":' * 500, b"," * 500, b" " * 5000),
]


def mutate(draws, data):
    """Bytes that are cut, exchanged, repeated or flipped here and there."""
    for _ in range(draws.choice([0, 1, 1, 2, 5])):
        start = draws.randrange(len(data) + 1)
        end = min(len(data), start + draws.choice([1, 1, 8, 200]))
        part = data[start:end]
        if part and draws.random() < 0.3:
            flipped = part[0] ^ 1 << draws.randrange(8)
            part = bytes([flipped]) + part[1:]
        else:
            part = draws.choice([b"", part * 9, draws.choice(TOKENS)])
        data = data[:start] + part + data[end:]
    return data


def draw_body(draws):
    """The body and the headers that it needs."""
    body = mutate(draws, json.dumps(draws.choice(BODIES)).encode())
    if draws.random() < 0.7:
        return body, {}
    if draws.random() < 0.1:
        body += b" " * 2**24  # a bomb
    return mutate(draws, gzip.compress(body, 1)), {"Content-Encoding": "gzip"}


def draw_request(draws):
    """(method, path, headers, body), each mutated or not."""
    method = draws.choice(["POST"] * 6 + ["GET", "GET", "HEAD", "PUT"])
    path = draws.choice(PATHS).encode()
    if draws.random() < 0.3:
        path = b"/" + mutate(draws, path[1:])
    body, headers = draw_body(draws) if method != "GET" else (b"", {})
    headers["Host"] = "localhost"
    for name in draws.sample([*HEADERS], draws.choice([0, 0, 1, 2])):
        headers[name] = draws.choice(HEADERS[name])
    return method, path, headers, body


@contextlib.contextmanager
def nothing_bad(caplog):
    """Neither a traceback nor a gibibyte more."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with caplog.at_level(logging.WARNING):
        yield
    assert not [record for record in caplog.records if record.exc_info]
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < GIBIBYTE


@pytest.fixture
def app(store, monkeypatch):
    # Nobody polls the store: a minute later /readyz would be 503.
    monkeypatch.setattr(model_store, "_LATE", math.inf)
    batcher = Batcher(256)
    yield RestApp(store, batcher, hosts=("localhost",), body_limit=2**20)
    batcher.close()


async def ask(draws, app, method, path, headers, body):
    """The status and the body of the answer of an application."""
    cuts = sorted(draws.randrange(len(body) + 1) for _ in range(3))
    bounds = zip([0, *cuts], [*cuts, len(body)], strict=True)
    parts = [body[start:end] for start, end in bounds]
    sent = []

    async def receive():
        if not parts:
            await asyncio.sleep(SECONDS)  # the client waits
            return {"type": "http.disconnect"}
        part = parts.pop(0)
        more = bool(parts)
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path.decode("latin-1"),
        "raw_path": path,
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ],
    }
    async with asyncio.timeout(SECONDS):
        await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], body


@pytest.mark.parametrize("count", COUNTS)
def test_rest(app, caplog, seed, count):
    draws = random.Random(seed)

    async def ask_all():
        for _ in range(count):
            request = draw_request(draws)
            status, body = await ask(draws, app, *request)
            assert status < 500, (request, body)
            if status >= 400 and request[1].startswith(b"/v1/"):
                assert list(json.loads(body)) == ["error"], (request, body)

    with nothing_bad(caplog):
        asyncio.run(ask_all())


@pytest.fixture
def address(app):
    server = serve._Server(serve._config(app), None, grace=SECONDS)
    with _listening("127.0.0.1", 0) as listening:
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listening]}
        )
        thread.start()
        yield listening.getsockname()
        server.should_exit = True
        thread.join(2 * SECONDS)
        assert not thread.is_alive()


def raw(method, path, headers, body):
    """A request as bytes; its lengths need not be right."""
    lengths = {"Content-Length", "Transfer-Encoding"} & set(headers)
    if not lengths and body:
        headers = {**headers, "Content-Length": f"{len(body)}"}
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (
        method.encode(),
        path,
        "".join(lines).encode("latin-1"),
        body,
    )


@pytest.mark.parametrize("count", COUNTS)
def test_connections(address, caplog, seed, count):
    draws, statuses = random.Random(seed), set()
    with nothing_bad(caplog):
        for _ in range(count):
            data = raw(*draw_request(draws))
            if draws.random() < 0.5:
                data = mutate(draws, data)
            with socket.create_connection(address, timeout=SECONDS) as made:
                with contextlib.suppress(ConnectionError, TimeoutError):
                    made.sendall(data[: 2**20])
                    made.settimeout(0.3)  # it may wait for the rest
                    answer = made.recv(100)
                    if answer:
                        statuses.add(int(answer[9:12]))
                        assert not answer.startswith(b"HTTP/1.1 5"), data
                with contextlib.suppress(OSError):
                    made.shutdown(socket.SHUT_WR)
        connection = http.client.HTTPConnection(*address, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
    assert {200, 400} <= statuses


def examples(*texts):
    request = ClassificationRequest(model_spec=spec(signature_name="classify"))
    for each in texts:
        features = request.input.example_list.examples.add().features
        features.feature["text"].bytes_list.value.append(each)
    return request


MESSAGES = [
    PredictRequest(model_spec=spec(), inputs={"text": text(b"hello", b"a")}),
    PredictRequest(
        model_spec=spec(signature_name="double"),
        inputs={"x": floats(1.0, 2.0)},
        output_filter=["y"],
    ),
    PredictRequest(
        model_spec=spec(signature_name="double_any"),
        inputs={"x": tf.make_tensor_proto([[1.0, 2.0], [3.0, 4.0]])},
    ),
    examples(b"a", b"good"),
    GetModelMetadataRequest(
        model_spec=spec(), metadata_field=["signature_def"]
    ),
    GetModelStatusRequest(model_spec=spec(version=1)),
]
REFUSED = {
    *("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"),
    *("UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE"),
}


UNREADABLE = {"INTERNAL", "UNKNOWN", "INVALID_ARGUMENT"}


def is_one(message, data):
    try:
        type(message).FromString(data)
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize("count", [30, slow(300)])
def test_grpc(grpc_client, caplog, seed, count):
    draws = random.Random(seed)
    with nothing_bad(caplog):
        for _ in range(count):
            message = draws.choice(MESSAGES)
            method = METHODS[type(message)]
            service = (
                "ModelService"
                if method == "GetModelStatus"
                else "PredictionService"
            )
            data = mutate(draws, message.SerializeToString())
            call = grpc_client.channel.unary_unary(
                f"/tensorflow.serving.{service}/{method}"
            )
            try:
                call(data, timeout=SECONDS)
            except grpc.RpcError as error:
                codes = REFUSED if is_one(message, data) else UNREADABLE
                assert error.code().name in codes, (data, error)
        grpc_client.send(MESSAGES[0])
