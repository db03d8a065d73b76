"""Probes that ask gRPC's health service, and calls that are too many."""

import threading

import grpc
import pytest

from kseq.server import grpc_messages
from tests.server.grpc_client import spec
from tests.waiting import wait_for

# Of the messages as they are sent: `service` and `status` are their field 1.
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


def check(client, service=""):
    name = service.encode()
    message = b"\x0a" + bytes([len(name)]) + name if name else b""
    method = client.channel.unary_unary("/grpc.health.v1.Health/Check")
    return method(message, 20)


@pytest.mark.parametrize(
    "service",
    [
        "",
        "liveness",
        "readiness",
        "tensorflow.serving.PredictionService",
        "tensorflow.serving.ModelService",
        "kseq.PredictionService",
    ],
)
def test_a_server_that_answers(store, grpc_client, service):
    store.poll()  # otherwise not ready a minute after the last poll
    assert check(grpc_client, service) == SERVING


@pytest.mark.parametrize("service", ["many", "Liveness", "é"])
def test_unknown_services(grpc_client, service):
    with pytest.raises(grpc.RpcError) as raised:
        check(grpc_client, service)
    assert raised.value.code().name == "NOT_FOUND"


def test_a_model_without_a_version(open_grpc, open_store, tmp_path):
    with open_grpc(open_store({"m": tmp_path})) as client:
        assert check(client) == NOT_SERVING
        assert check(client, "liveness") == NOT_SERVING


def test_a_server_that_must_not_get_requests(open_grpc, store):
    with open_grpc(store, unready=lambda: "a worker is started") as client:
        assert check(client) == NOT_SERVING
        assert check(client, "liveness") == SERVING


def test_too_many_calls(open_grpc, store, monkeypatch):
    monkeypatch.setattr(grpc_messages, "_CALLS", 2)
    leave, records = threading.Event(), []

    def nothing():
        leave.wait(20)
        yield from ()

    with open_grpc(store, log=records.append) as client:
        path = "/tensorflow.serving.PredictionService/Predict"
        send = client.channel.stream_unary(path)
        waiting = [send.future(nothing(), 20) for _ in range(2)]
        predict = client.channel.unary_unary(path)

        def is_refused():
            call = predict.future(spec().SerializeToString(), 20)
            return call.code().name == "RESOURCE_EXHAUSTED"

        wait_for(is_refused)
        assert check(client) == SERVING
        leave.set()
        for call in waiting:
            assert call.exception(20) is not None
        wait_for(lambda: not is_refused())
        client.stop(1)
    assert {record["client"] for record in records} == {"127.0.0.1"}
    found = [(record["path"], record["status"]) for record in records]
    assert ("Predict", "RESOURCE_EXHAUSTED") in found
    assert ("Check", "OK") in found
