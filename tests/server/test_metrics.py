"""What Prometheus finds."""

import threading
import types
from urllib.parse import quote

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from kseq.server import Batcher
from kseq.server.body_memory import BodyMemory
from kseq.server.metrics import Metrics
from kseq.server.shared_metrics import SharedMetrics
from tests.server.grpc_client import spec
from tests.server.tensor_protos import text
from tests.waiting import wait_for

METRICS = "/monitoring/prometheus/metrics"


@pytest.fixture
def metrics(store):
    return Metrics(store)


def values(body, name):
    """dict, values of the labels, by their names' order -> value."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if sample.name == name
    }


def record(**more):
    return {
        "client": "127.0.0.1",
        "model": "many",
        "method": "POST",
        "path": "/",
        "status": 200,
        "bytes": 1,
        "seconds": 0.1,
        **more,
    }


def test_requests_of_both_apis(metrics, store, open_client, open_grpc):
    rest = open_client(store, log=metrics.observe)
    for body in ({"instances": ["a"]}, {"inputs": ["a"]}, {}):
        rest.post("/v1/models/many:predict", json=body)
    rest.get("/v1/models/many")
    rest.get("/v1/models/my%20films")
    with open_grpc(store, log=metrics.observe) as client:
        inputs = {"text": text(b"hello")}
        client.send(PredictRequest(model_spec=spec(), inputs=inputs))
        client.check_error(
            PredictRequest(model_spec=spec()), "INVALID_ARGUMENT"
        )
        client.stop(1)
    found = values(metrics.text(), "kseq_requests_total")
    assert found == {
        ("REST", "many", "200", "2"): 2,
        ("REST", "many", "200", ""): 1,  # a status is of no version
        ("REST", "many", "400", "2"): 1,
        ("REST", "my films", "200", ""): 1,
        ("gRPC", "many", "OK", "2"): 1,
        ("gRPC", "many", "INVALID_ARGUMENT", "2"): 1,
    }
    assert values(metrics.text(), "kseq_request_seconds_count") == {
        ("REST", "many", ""): 1,
        ("REST", "many", "2"): 3,
        ("REST", "my films", ""): 1,
        ("gRPC", "many", "2"): 2,
    }


def test_unknown_models_share_a_label(metrics, store, open_client, open_grpc):
    rest = open_client(store, log=metrics.observe)
    with open_grpc(store, log=metrics.observe) as client:
        for name in ("a", "b", "c\n", "é"):
            rest.get(f"/v1/models/{quote(name)}")
            rest.get(f"/{quote(name)}")
            request = PredictRequest(model_spec=spec(name))
            client.check_error(request, "NOT_FOUND")
        client.stop(1)
    assert values(metrics.text(), "kseq_requests_total") == {
        ("REST", "", "404", ""): 8,
        ("gRPC", "", "NOT_FOUND", ""): 4,
    }


def test_seconds(metrics):
    for seconds in (0.003, 0.03, 0.04, 100.0):
        metrics.observe(record(seconds=seconds))
    body = metrics.text()
    assert values(body, "kseq_request_seconds_sum") == {
        ("REST", "many", ""): pytest.approx(100.073)
    }
    buckets = {
        bound: count
        for (_, bound, *_), count in values(
            body, "kseq_request_seconds_bucket"
        ).items()
    }
    assert (buckets["0.005"], buckets["0.05"]) == (1, 3)
    assert (buckets["30.0"], buckets["+Inf"]) == (3, 4)


def test_the_last_versions_alone_have_counters(metrics):
    for version in range(1, 101):
        for status in (200, 400):
            metrics.observe(record(version=version, status=status))
        metrics.observe(record(version=1))  # by a label
    body = metrics.text()
    assert values(body, "kseq_requests_total") == {
        ("REST", "many", "200", "1"): 101,
        **{
            ("REST", "many", status, f"{version}"): 1
            for version in (98, 99, 100)
            for status in ("200", "400")
        },
        ("REST", "many", "400", "1"): 1,
    }
    assert values(body, "kseq_request_seconds_count") == {
        ("REST", "many", "1"): 102,
        **{("REST", "many", f"{version}"): 2 for version in (98, 99, 100)},
    }


def test_calls_and_what_waits(metrics, store, monkeypatch):
    servable, release, begun = store.find("many"), threading.Event(), []
    run = servable.run

    def hold(signature, inputs):
        begun.append(inputs)
        assert release.wait(20)
        return run(signature, inputs)

    def waiting():
        return values(metrics.text(), "kseq_waiting_requests")[()]

    monkeypatch.setattr(servable, "run", hold)
    batcher = Batcher(10, num_threads=2, observe=metrics.observe_call)
    metrics.watch(batcher, BodyMemory(1))
    assert waiting() == 0
    inputs = {"text": np.array([b"a"], object)}
    answers = []
    try:
        for count in (1, 2):
            answers.append(batcher.submit(servable, "text", inputs, 20))
            wait_for(lambda n=count: len(begun) == n)
        for _ in range(3):
            answers.append(batcher.submit(servable, "text", inputs, 20))
        assert waiting() == 3
        release.set()
        assert [a.result(20)["score"].tolist() for a in answers] == [[1]] * 5
    finally:
        release.set()
        batcher.close()
    body = metrics.text()
    assert waiting() == 0
    assert values(body, "kseq_batch_requests_count") == {(): 3}
    assert values(body, "kseq_batch_requests_sum") == {(): 5}
    buckets = values(body, "kseq_batch_requests_bucket")
    assert (buckets[("1.0",)], buckets[("4.0",)]) == (2, 3)


def test_versions(open_store, tmp_path, numbered, install):
    install(numbered(1), tmp_path / "m" / "1")
    store = open_store({"m": tmp_path / "m", "none": tmp_path / "none"})
    metrics = Metrics(store)

    def versions():
        return values(metrics.text(), "kseq_model_version")

    assert versions() == {("m",): 1, ("none",): 0}
    install(numbered(2), tmp_path / "m" / "2")
    store.poll()
    assert versions() == {("m",): 2, ("none",): 0}


def test_the_process_itself(metrics):
    (memory,) = values(metrics.text(), "process_resident_memory_bytes").values()
    assert memory > 2**20


def test_two_servers_of_a_process_count_alone(store):
    one, other = Metrics(store), Metrics(store)
    one.observe(record())
    assert values(one.text(), "kseq_requests_total")
    assert not values(other.text(), "kseq_requests_total")


def test_page(metrics, store, open_client):
    client = open_client(store, log=metrics.observe, metrics=metrics.text)
    client.get("/v1/models/many")
    answer = client.get(METRICS)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(
        "text/plain; version=0.0.4"
    )
    found = values(answer.content, "kseq_requests_total")
    assert found == {("REST", "many", "200", ""): 1}
    assert client.post(METRICS).status_code == 404
    assert client.get(f"{METRICS}/more").status_code == 404


def test_no_page_unless_it_is_asked_for(store, open_client):
    client = open_client(store)
    assert client.get(METRICS).status_code == 404


def test_other_host(metrics, store, open_client):
    client = open_client(store, metrics=metrics.text)
    answer = client.get(METRICS, headers={"host": "evil.example"})
    assert answer.status_code == 403
    assert "kseq_" not in answer.text


@pytest.fixture
def workers(store, tmp_path):
    """The metrics of two workers, and what all of them show."""
    found = []
    for number in (1, 2):
        file = tmp_path / f"{number}.worker"
        worker = types.SimpleNamespace(folder=tmp_path, file=file)
        metrics = Metrics(store)
        found.append((metrics, SharedMetrics(metrics, worker)))
    return found


def test_workers_show_the_metrics_of_all(workers):
    (one, all_of_one), (other, all_of_other) = workers
    for _ in range(2):
        one.observe(record())
    other.observe(record())
    all_of_one.write()
    body = all_of_other.text()
    counts = values(body, "kseq_requests_total")
    assert counts == {
        ("REST", "many", "200", "", "1"): 2,
        ("REST", "many", "200", "", "2"): 1,
    }
    assert len(values(body, "process_resident_memory_bytes")) == 2
    seconds = values(body, "kseq_request_seconds_sum")
    assert seconds[("REST", "many", "", "1")] == pytest.approx(0.2)
    # Prometheus refuses a metric that comes twice.
    lines = body.decode().splitlines()
    types_of = [line for line in lines if line.startswith("# TYPE")]
    assert len(types_of) == len({*types_of}) > 5
    # Both show the same, so that no counter goes back.
    one.observe(record())
    assert values(all_of_other.text(), "kseq_requests_total") == counts
    assert values(all_of_one.text(), "kseq_requests_total") == {
        **counts,
        ("REST", "many", "200", "", "1"): 3,
    }


def test_a_worker_whose_file_is_gone(workers, tmp_path):
    for _, shared in workers:
        shared.write()
    (tmp_path / "2.worker").unlink()
    (tmp_path / "3.worker").mkdir()
    body = workers[0][1].text()
    assert values(body, "kseq_waiting_requests") == {("1",): 0}
    (tmp_path / "1.worker").unlink()
    (tmp_path / "1.worker").mkdir()  # as a disk that is full
    assert values(workers[0][1].text(), "kseq_waiting_requests") == {}
