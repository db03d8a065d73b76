"""Answers over gRPC while they are being found."""

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from kseq.server.grpc_services import STREAMING_SERVICE
from tests.server.streaming_models import Steps
from tests.server.test_connections import wait_for


@pytest.fixture
def records():
    return []


@pytest.fixture
def client(streaming_store, open_grpc, records):
    limits = {"body_limit": 2**20, "log": records.append}
    with open_grpc(streaming_store, **limits) as client:
        yield client


@pytest.fixture
def steps(streaming_store, monkeypatch):
    steps = Steps(streaming_store.find("upper"), monkeypatch)
    yield steps
    steps.tickets.release(99)


def ask(client, model, signature="", timeout=20, **inputs):
    call = client.channel.unary_stream(
        f"/{STREAMING_SERVICE}/PredictStreamed",
        request_serializer=PredictRequest.SerializeToString,
        response_deserializer=PredictResponse.FromString,
    )
    request = PredictRequest(
        model_spec=ModelSpec(name=model, signature_name=signature)
    )
    for name, (value, dtype) in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
    return call(request, timeout=timeout)


def text(*values):
    return list(values), tf.string


def texts_of(responses):
    return [each.outputs["text"].string_val[0].decode() for each in responses]


def test_parts_and_then_the_whole_answer(client, records):
    *parts, last = ask(client, "upper", text=text("abc"))
    assert texts_of(parts) == ["A", "B", "C"]
    assert all(set(part.outputs) == {"text"} for part in parts)
    assert texts_of([last]) == ["ABC"]
    assert set(last.outputs) == {"text", "score", "truncated"}
    assert last.model_spec.version.value == 1
    wait_for(lambda: records)
    [record] = records
    assert record["status"] == "OK"
    assert record["path"] == "PredictStreamed"
    assert record["model"] == "upper"
    sizes = [each.ByteSize() for each in (*parts, last)]
    assert record["bytes"] == sum(sizes)


def test_what_draws_its_answer(client):
    *parts, last = ask(
        client,
        "writer",
        "sample",
        prompt=text("a"),
        temperature=([0.5], tf.float32),
        top_p=([1.0], tf.float32),
        seed=([7], tf.int64),
    )
    assert "".join(texts_of(parts)) == "a|0.5|1.0|7"
    assert texts_of([last]) == ["a|0.5|1.0|7"]


@pytest.mark.parametrize(
    ("model", "inputs", "code", "message"),
    [
        ("upper", {"text": text("a", "b")}, "INVALID_ARGUMENT", "one input"),
        ("upper", {}, "INVALID_ARGUMENT", "Missing but required: {text}"),
        ("x", {"text": text("a")}, "NOT_FOUND", "x"),
        ("upper", {"text": text("a" * 2**21)}, "RESOURCE_EXHAUSTED", "larger"),
    ],
)
def test_refused(client, model, inputs, code, message):
    with pytest.raises(grpc.RpcError, match=message) as caught:
        list(ask(client, model, **inputs))
    assert caught.value.code() == grpc.StatusCode[code]


def test_who_leaves_ends_the_answer(client, steps, records):
    responses = ask(client, "upper", text=text("a" * 50))
    steps.tickets.release()
    assert texts_of([next(responses)]) == ["A"]
    responses.cancel()
    wait_for(lambda: records)
    steps.tickets.release(99)
    wait_for(lambda: client.batcher.waiting == 0)
    assert steps.begun < 5
    assert records[0]["status"] == "CANCELLED"


def test_the_deadline_is_that_of_the_client(client, steps):
    responses = ask(client, "upper", text=text("abc"), timeout=1)
    steps.tickets.release()
    assert texts_of([next(responses)]) == ["A"]
    with pytest.raises(grpc.RpcError) as caught:
        next(responses)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
