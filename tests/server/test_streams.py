"""Answers of `:predict` as server-sent events."""

import http.client
import json

import pytest

from kseq.server.request_error import RequestError
from tests.server.streaming_models import Steps, fail_at
from tests.server.test_connections import Server, wait_for

UPPER = "/v1/models/upper:predict"


@pytest.fixture(scope="module")
def store(streaming_store):
    return streaming_store


def events_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert "content-length" not in answer.headers
    *events, rest = answer.text.split("\n\n")
    assert rest == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def stream(client, model, body):
    path = f"/v1/models/{model}:predict"
    return events_of(client.post(path, json={**body, "stream": True}))


@pytest.mark.parametrize("text", ["", "a", "Straße\n日本 😀", 'a"b\\'])
@pytest.mark.parametrize("key", ["instances", "inputs"])
def test_parts_and_then_the_whole_answer(client, text, key):
    body = {key: [text]}
    *parts, last = stream(client, "upper", body)
    assert last == client.post(UPPER, json=body).json()
    if key == "instances":
        found = last["predictions"][0]["text"]
    else:
        [found] = last["outputs"]["text"]
    assert [part["text"] for part in parts] == list(found)
    # The same body without, and with false, is answered as ever.
    assert client.post(UPPER, json={**body, "stream": False}).json() == last


def test_what_draws_its_answer(client):
    instance = {
        "turns": ["hi", "ho"],
        "temperature": 0.5,
        "top_p": 1.0,
        "seed": 7,
    }
    body = {"signature_name": "sample", "instances": [instance]}
    *parts, last = stream(client, "chat", body)
    assert "".join(part["text"] for part in parts) == "ho|0.5|1.0|7"
    assert last["predictions"][0]["text"] == "ho|0.5|1.0|7"
    assert len(parts) > 2


@pytest.mark.parametrize(
    ("model", "text"), [("whole", ["ab"]), ("chat", [["a", "b"]])]
)
def test_what_cannot_be_streamed_comes_at_once(client, model, text):
    """Without these signatures, and for a search that is not theirs."""
    part, last = stream(client, model, {"instances": text})
    assert part["text"] == last["predictions"][0]["text"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"instances": ["a", "b"]}, "one input"),
        ({"inputs": ["a", "b"]}, "one input"),
        ({"instances": ["a"], "stream": "yes"}, "boolean"),
        ({"instances": ["a"], "stream": 1}, "boolean"),
        ({"instances": ["a"], "stream": None}, "boolean"),
        ({"instances": [], "stream": True}, "No values"),
        (
            {"signature_name": "stream_next", "instances": ["a"]},
            "not found in signature def",
        ),
        (
            {"signature_name": "stream_start", "instances": ["a"]},
            "not found in signature def",
        ),
    ],
)
def test_refused(client, body, message):
    answer = client.post(UPPER, json={"stream": True, **body})
    assert answer.status_code == 400
    assert message in answer.json()["error"]


def test_other_outputs_than_text_are_no_stream(models, open_store, open_client):
    client = open_client(open_store(models))
    body = {"signature_name": "double", "instances": [1.0], "stream": True}
    answer = client.post("/v1/models/many:predict", json=body)
    assert answer.status_code == 400
    assert "no output text" in answer.json()["error"]


def test_the_state_is_no_signature_for_clients(client):
    metadata = client.get("/v1/models/upper/metadata").json()
    found = metadata["metadata"]["signature_def"]["signature_def"]
    assert {name for name in found if "stream" in name} == set()
    models = client.get("/page/models.json").json()["models"]
    assert all("stream_next" not in model["signatures"] for model in models)
    streams = {model["name"]: model["streams"] for model in models}
    assert streams == {
        "upper": "serving_default",
        "whole": None,
        "chat": "sample",
        "writer": "sample",
    }


def test_an_error_in_the_middle_is_an_event(store, client, monkeypatch):
    error = RequestError("No more", "RESOURCE_EXHAUSTED")
    fail_at(2, error, store.find("upper"), monkeypatch)
    events = stream(client, "upper", {"instances": ["abc"]})
    assert events == [{"text": "A"}, {"text": "B"}, {"error": "No more"}]


def test_a_fault_in_the_middle_is_an_event(store, monkeypatch):
    error = ZeroDivisionError("secret")
    fail_at(1, error, store.find("upper"), monkeypatch)
    server = Server(store)
    try:
        connection = begin(server, "abc")
        events = connection.getresponse().read().split(b"\n\n")
        connection.close()
    finally:
        server.stop()
    assert events == [
        b'data: {"text": "A"}',
        b'data: {"error": "Internal error"}',
        b"",
    ]


def test_an_error_before_the_first_part_is_a_response(
    store, open_client, monkeypatch
):
    client = open_client(store, queue_size=0)
    answer = client.post(UPPER, json={"instances": ["a"], "stream": True})
    assert answer.status_code == 429
    assert answer.headers["retry-after"]
    assert "queue is full" in answer.json()["error"]


@pytest.fixture
def steps(store, monkeypatch):
    steps = Steps(store.find("upper"), monkeypatch)
    yield steps
    steps.tickets.release(99)


def connect(server):
    return http.client.HTTPConnection(*server.address, timeout=20)


def begin(server, text):
    connection = connect(server)
    body = json.dumps({"instances": [text], "stream": True})
    headers = {"host": "localhost"}
    connection.request("POST", UPPER, body, headers)
    return connection


def test_each_part_is_sent_before_the_next_is_found(store, steps):
    server = Server(store)
    try:
        connection = begin(server, "abc")
        steps.tickets.release()
        response = connection.getresponse()
        assert response.readline() == b'data: {"text": "A"}\n'
        assert response.readline() == b"\n"
        wait_for(lambda: steps.begun == 2)
        # Others are answered meanwhile.
        other = connect(server)
        other.request(
            "POST",
            "/v1/models/whole:predict",
            '{"instances": ["x"]}',
            {"host": "localhost"},
        )
        assert b'"X"' in other.getresponse().read()
        steps.tickets.release(3)
        rest = response.read().split(b"\n\n")
        assert rest[:2] == [b'data: {"text": "B"}', b'data: {"text": "C"}']
        assert b'"ABC"' in rest[2]
        connection.close()
        other.close()
    finally:
        steps.tickets.release(99)
        server.stop()


def test_nobody_waits_for_the_rest_of_who_leaves(store, steps):
    records = []
    server = Server(store, log=records.append)
    try:
        connection = begin(server, "a" * 50)
        steps.tickets.release()
        response = connection.getresponse()
        response.readline()
        wait_for(lambda: steps.begun == 2)
        response.close()
        connection.close()

        def is_noticed():
            """At the latest where the third part cannot be sent."""
            steps.tickets.release()
            return records

        wait_for(is_noticed)
        wait_for(lambda: server.batcher.waiting == 0)
        assert steps.begun < 50
        [record] = records
        assert record["status"] == 499
    finally:
        steps.tickets.release(99)
        server.stop()


def test_a_full_queue_does_not_end_what_has_begun(store, steps):
    server = Server(store, queue_size=1)
    try:
        connection = begin(server, "ab")
        wait_for(lambda: steps.begun == 1)
        server.batcher.queue_size = 0
        steps.tickets.release(3)
        response = connection.getresponse()
        assert response.read().endswith(b'"truncated": false}]}\n\n')
        connection.close()
    finally:
        server.stop()


def test_the_time_of_all_parts_is_limited(store, steps):
    records = []
    server = Server(store, timeout=0.3, log=records.append)
    try:
        connection = begin(server, "abc")
        steps.tickets.release()
        body = connection.getresponse().read()
        first, last, _ = body.split(b"\n\n")
        assert json.loads(first.removeprefix(b"data: ")) == {"text": "A"}
        assert json.loads(last.removeprefix(b"data: ")) == {
            "error": "Timed out"
        }
        connection.close()
        wait_for(lambda: records)
        assert records[0]["status"] == 504
    finally:
        steps.tickets.release(99)
        server.stop()


def test_shutdown_waits_for_a_stream(store, steps):
    server = Server(store)
    connection = begin(server, "ab")
    wait_for(lambda: steps.begun == 1)
    server.begin_to_stop()
    steps.tickets.release(3)
    body = connection.getresponse().read()
    assert body.endswith(b'"truncated": false}]}\n\n')
    connection.close()
    server.stop()
    assert server.is_stopped()


def test_the_log_has_one_record(store, open_client):
    records = []
    client = open_client(store, log=records.append)
    body = {"instances": ["xyz"], "stream": True}
    answer = client.post(UPPER, json=body)
    [record] = records
    assert record["status"] == 200
    assert record["bytes"] == len(answer.content)
    assert record["model"] == "upper"
    assert record["version"] == 1
    assert record["request_id"] == answer.headers["x-request-id"]
    assert "xyz" not in json.dumps(record)
