"""gRPC clients that wait, leave and are turned away, and what is logged."""

import gc
import json
import shutil
import threading
import time
import tracemalloc

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from kseq.server import grpc_messages
from kseq.server.body_memory import BodyMemory
from tests.server.grpc_client import METHODS, spec
from tests.server.tensor_protos import text
from tests.waiting import wait_for


def predict(*texts, model=None):
    return PredictRequest(
        model_spec=model or spec(), inputs={"text": text(*texts or [b"hello"])}
    )


def score_of(response):
    (score,) = response.outputs["score"].float_val
    return score


def test_no_request_fails_while_versions_change(
    open_grpc, open_store, tmp_path, numbered, install
):
    base, last = tmp_path / "m", 4
    install(numbered(1), base / "1")
    store = open_store({"m": base})
    stop, found, errors = threading.Event(), [], []

    def work(client, size):
        request = predict(*[b"a"] * size, model=spec("m"))
        while not stop.is_set():
            try:
                response = client.send(request)
                rows = response.outputs["version"].int64_val
                assert rows == response.outputs["again"].int64_val
                assert rows == [response.model_spec.version.value] * size
                found.append(rows[0])
            except Exception as error:
                errors.append(error)
                return

    with open_grpc(store) as client:
        threads = [
            threading.Thread(target=work, args=(client, n)) for n in range(1, 5)
        ]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, last + 1):
                if number > 1:
                    install(numbered(number), base / str(number))
                    store.poll()
                    shutil.rmtree(base / str(number - 1))
                wait_for(lambda n=number: errors or n in found)
        finally:
            stop.set()
            for thread in threads:
                thread.join(20)
    assert not errors
    assert set(found) == set(range(1, last + 1))


def occupy(client, held):
    """Answers of requests that occupy the two threads of a batcher."""
    answers = []
    for count in (1, 2):
        answers.append(client.begin(predict()))
        wait_for(lambda n=count: len(held.begun) == n)
    return answers


def test_full_queue(store, open_grpc, held):
    with open_grpc(store, queue_size=2) as client:
        answers = occupy(client, held)
        answers += [client.begin(predict()) for _ in range(2)]
        wait_for(lambda: client.batcher.waiting == 2)
        client.check_error(predict(), "RESOURCE_EXHAUSTED", "queue")
        assert not any(answer.done() for answer in answers)
        held.set()
        assert [score_of(answer.result()) for answer in answers] == [5] * 4
        assert score_of(client.send(predict())) == 5


def test_messages_that_are_too_large_together(store, open_grpc, held):
    memory = BodyMemory(40_000)
    with open_grpc(store, memory=memory) as client:
        large = predict(b"a" * 6000)
        first = client.begin(large)
        wait_for(lambda: held.begun)
        client.check_error(large, "RESOURCE_EXHAUSTED", "no room for")
        held.set()
        assert score_of(first.result()) == 6000
        wait_for(lambda: memory.held == 0)
        assert score_of(client.send(large)) == 6000


def test_who_leaves_leaves_the_queue(store, open_grpc, held):
    records = []
    with open_grpc(store, log=records.append) as client:
        answers = occupy(client, held)
        waiting = client.begin(predict(b"another length, and so alone"))
        wait_for(lambda: client.batcher.waiting == 1)
        waiting.cancel()
        wait_for(lambda: client.batcher.waiting == 0)
        waiting = client.begin(predict(), timeout=0.5)
        wait_for(lambda: client.batcher.waiting == 1)
        assert waiting.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        wait_for(lambda: client.batcher.waiting == 0)
        assert len(held.begun) == 2
        held.set()
        assert [score_of(answer.result()) for answer in answers] == [5, 5]
        wait_for(lambda: len(records) == 4)
    assert {record["client"] for record in records} == {"127.0.0.1"}
    *gone, third, fourth = sorted(
        (record["status"] for record in records), key="OK".__eq__
    )
    assert {*gone} <= {"CANCELLED", "DEADLINE_EXCEEDED"}
    assert third == fourth == "OK"


def test_timeout_of_the_server(store, open_grpc, held):
    start = time.monotonic()
    with open_grpc(store, timeout=0.2) as client:
        answers = occupy(client, held)
        client.check_error(predict(), "DEADLINE_EXCEEDED", timeout=None)
        for answer in answers:
            assert answer.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - start < 15  # seconds; clients wait for 20
        assert client.batcher.waiting == 0
        held.set()
        assert score_of(client.send(predict())) == 5


def test_what_is_in_flight_is_answered_before_the_end(store, open_grpc, held):
    with open_grpc(store) as client:
        answers = occupy(client, held)
        stopping = threading.Thread(target=client.stop, args=(20,))
        stopping.start()
        stopping.join(0.1)
        assert stopping.is_alive()
        held.set()
        assert [score_of(answer.result()) for answer in answers] == [5, 5]
        stopping.join(20)
        client.check_error(predict(), "UNAVAILABLE")


def classify(model, value):
    feature = {"text": {"bytes_list": {"value": [value]}}}
    example = {"features": {"feature": feature}}
    return ClassificationRequest(
        model_spec=model, input={"example_list": {"examples": [example]}}
    )


def metadata(*fields, model):
    return GetModelMetadataRequest(model_spec=model, metadata_field=fields)


SECRET, FILMS = spec("secret"), spec("my films")


@pytest.mark.parametrize(
    ("asked", "model", "status"),
    [
        (predict(b"secret"), "many", "OK"),
        (predict(model=spec(version=1)), "many", "OK"),
        (classify(FILMS, b"secret"), "my films", "OK"),
        (metadata("signature_def", model=FILMS), "my films", "OK"),
        (GetModelStatusRequest(model_spec=spec()), "many", "OK"),
        (
            predict(model=spec(signature_name="secret")),
            "many",
            "FAILED_PRECONDITION",
        ),
        (
            predict(b"secret", model=spec(signature_name="to_number")),
            "many",
            "INVALID_ARGUMENT",
        ),
        (predict(model=SECRET), "", "NOT_FOUND"),
        (predict(model=spec("")), "", "INVALID_ARGUMENT"),
        (PredictRequest(), "", "INVALID_ARGUMENT"),
        (classify(SECRET, b"a"), "", "NOT_FOUND"),
        (metadata("signature_def", model=SECRET), "", "NOT_FOUND"),
        (metadata("secret", model=spec()), "many", "INVALID_ARGUMENT"),
        (GetModelStatusRequest(model_spec=SECRET), "", "NOT_FOUND"),
        (RegressionRequest(model_spec=spec()), "many", "INVALID_ARGUMENT"),
        (MultiInferenceRequest(), "", "UNIMPLEMENTED"),
        (ReloadConfigRequest(), "", "UNIMPLEMENTED"),
    ],
    ids=range(17),
)
def test_log(store, open_grpc, asked, model, status):
    records, size = [], 0
    with open_grpc(store, log=records.append) as client:
        try:
            size = client.send(asked).ByteSize()
        except grpc.RpcError as error:
            assert error.code().name == status
        client.stop(1)
    (record,) = records
    assert "secret" not in json.dumps(record)
    assert record.pop("path").endswith(METHODS[type(asked)])
    assert 0 <= record.pop("seconds") < 20
    assert "127.0.0.1" in record.pop("client")
    assert record.pop("time") and record.pop("request_id")
    assert record.pop("version") in {None, 1, 2, 7}
    assert record == {
        "model": model,
        "method": "gRPC",
        "status": status,
        "bytes": size,
    }


@pytest.mark.parametrize("method", ["/a.Service/Method", "/x", "/" + 300 * "x"])
def test_unknown_methods_are_in_the_log(store, open_grpc, method):
    records = []
    with open_grpc(store, log=records.append) as client:
        id_sent = (("x-request-id", "trace-7"),)
        with pytest.raises(grpc.RpcError) as raised:
            client.channel.unary_unary(method)(b"secret", 20, id_sent)
        client.stop(1)
    assert raised.value.code().name == "UNIMPLEMENTED"
    assert raised.value.details() == "Method not found!"
    (record,) = records
    assert record["path"] == method[:200]
    assert record["request_id"] == "trace-7"
    assert record["client"] == "127.0.0.1"
    assert record["status"] == "UNIMPLEMENTED"


def test_the_id_of_a_request(store, open_grpc):
    records, found = [], []
    with open_grpc(store, log=records.append) as client:
        for sent in ((("x-request-id", "trace-7"),), (), None):
            for request in (predict(), predict(model=SECRET)):
                call = client.begin(request, metadata=sent)
                found.append(dict(call.trailing_metadata())["x-request-id"])
        client.stop(1)
    assert found == [record["request_id"] for record in records]
    assert found[:2] == ["trace-7"] * 2
    assert len(set(found[2:])) == 4
    assert [record["version"] for record in records] == [2, None] * 3


def test_the_id_of_a_message_that_is_not_read(store, open_grpc):
    records = []
    memory = BodyMemory(40_000)
    with open_grpc(store, log=records.append, memory=memory) as client:
        call = client.begin(
            predict(b"a" * 2**17), metadata=(("x-request-id", "trace-7"),)
        )
        assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        found = dict(call.trailing_metadata())
        client.stop(1)
    assert found["x-request-id"] == "trace-7"
    (record,) = records
    assert record["request_id"] == "trace-7"
    assert record["model"] == ""
    assert record["version"] is None
    assert record["bytes"] == 0


def test_the_log_has_a_host_as_that_of_rest_has(store, open_grpc):
    records = []
    with open_grpc(store, log=records.append) as client:
        client.send(predict())
        client.stop(1)
    assert [record["client"] for record in records] == ["127.0.0.1"]


def test_messages_that_do_not_come_make_room(store, open_grpc, monkeypatch):
    monkeypatch.setattr(grpc_messages, "_PACE", 0.3)
    monkeypatch.setattr(grpc_messages, "_READ", 0)  # four at once
    more = threading.Event()

    def nothing():
        more.wait(20)
        yield from ()

    with open_grpc(store) as client:
        send = client.channel.stream_unary(
            "/tensorflow.serving.PredictionService/Predict"
        )
        stalled = [send.future(nothing(), 20) for _ in range(4)]
        time.sleep(0.5)
        assert [score_of(client.send(predict())) for _ in "abc"] == [5] * 3
        ended = [call for call in stalled if call.done()]
        assert 1 <= len(ended) <= 3
        for call in ended:
            assert call.code().name == "DEADLINE_EXCEEDED"
        more.set()
        for call in stalled:
            assert call.exception(20) is not None


def test_a_call_ends_with_its_client(store, open_grpc):
    slow = predict()
    slow.model_spec.signature_name = "count_slowly"
    slow.inputs.clear()
    slow.inputs["x"].CopyFrom(tf.make_tensor_proto([2**30], tf.int32))
    with open_grpc(store) as client:
        call = client.begin(slow)
        wait_for(lambda: client.batcher._calls)
        call.cancel()
        wait_for(lambda: not client.batcher._calls)
        assert score_of(client.send(predict())) == 5


def test_refused_messages_are_forgotten_at_once(store, open_grpc):
    memory = BodyMemory(40_000)
    with open_grpc(store, memory=memory) as client:
        large = predict(b"a" * 2**21)
        client.check_error(large, "RESOURCE_EXHAUSTED", "no room for")
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(8):
                client.check_error(large, "RESOURCE_EXHAUSTED", "no room for")
            left, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
        assert left < 6 * 2**20
