import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request

import grpc
import psutil
import pytest
import tensorflow as tf
import uvicorn
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceStub,
)

from kseq.cli import main
from kseq.commands import serve
from kseq.server import ModelStore
from kseq.server import serve as server_module
from tests.failing_disk import FailingDisk
from tests.waiting import wait_for

# The operations of `_Slow` that no export of kseq has.
ALLOWED = ("--allow-op", "PartitionedCall", "--allow-op", "StringToNumber")


class _Slow(tf.Module):
    """Counts to the number that is the text, which takes a while."""

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def count(self, text):
        numbers = tf.strings.to_number(text, tf.int32)
        end = tf.reduce_max(tf.concat([numbers, [0]], 0))
        count = tf.while_loop(
            lambda i: i < end, lambda i: [i + 1], [tf.constant(0)]
        )[0]
        return {"count": tf.fill(tf.shape(text), count)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def for_ever(self, text):
        """A loop whose condition TensorFlow leaves out, with what ends it."""
        count = tf.cond(
            tf.reduce_any(text == "for ever"),
            lambda: tf.while_loop(
                lambda i: True, lambda i: [i + 1], [tf.constant(0)]
            )[0],
            lambda: tf.constant(0),
        )
        return {"count": tf.fill(tf.shape(text), count)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
    def much(self, text):
        return {"text": tf.fill(tf.shape(text), "x" * 10_000)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved_models") / "slow"
    module = _Slow()
    # What warms a signature up is no number.
    signatures = {
        "serving_default": module.count,
        "for_ever": module.for_ever,
        "much": module.much,
    }
    tf.saved_model.save(module, str(folder / "7"), signatures=signatures)
    return folder


@contextlib.contextmanager
def serving(*words):
    """(process, port) of a server that is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kseq", "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                break
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


def grpc_port(process):
    """The port that the server names after those of HTTP."""
    for line in process.stderr:
        if found := re.match(r"gRPC: 127\.0\.0\.1:(\d+)", line):
            return int(found[1])


def predict_by_grpc(port, text):
    request = PredictRequest(model_spec={"name": "slow"})
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        answer = PredictionServiceStub(channel).Predict(request, timeout=60)
    return list(answer.outputs["count"].int_val)


def predict(port, text):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"instances": [text]})
    with contextlib.closing(connection):
        connection.request("POST", "/v1/models/slow:predict", body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def metrics(port):
    url = f"http://127.0.0.1:{port}/monitoring/prometheus/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def test_what_is_in_flight_is_answered_before_the_end(folder):
    options = ("--access-log", "--metrics", "--grpc-port", "0")
    with serving(str(folder), *options, *ALLOWED) as (process, port):
        other_port = grpc_port(process)
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in "abc"]
        silent[0].sendall(b"POST /v1/models/slow:predict HTTP/1.1\r\nHost: ")
        gone = socket.create_connection(("127.0.0.1", port))
        gone.close()
        assert predict(port, "12345") == (200, {"predictions": [12345]})
        answers = []
        threads = [
            threading.Thread(target=lambda ask=ask: answers.append(ask()))
            for ask in (
                lambda: predict(port, "300000"),
                lambda: predict_by_grpc(other_port, "300000"),
            )
        ]
        for thread in threads:
            thread.start()
        # The line of the first request is in the log; the others run.
        assert json.loads(process.stdout.readline())["status"] == 200
        threads[0].join(0.5)
        assert 'kseq_requests_total{api="REST",model="slow"' in metrics(port)
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
        assert (200, {"predictions": [300000]}) in answers
        assert [300000] in answers
        for connection in silent:
            connection.close()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "300000" not in out + err


def wait_for_line(process, text):
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"{text} was not printed")


def requests_of_workers(port):
    """dict, number of a worker -> the requests to the model that it counts."""
    counts = {}
    pattern = r'kseq_requests_total{.*model="slow".*worker="(\d)"} (\S+)'
    for number, count in re.findall(pattern, metrics(port)):
        counts[number] = counts.get(number, 0) + float(count)
    return counts


TWO_WORKERS = (
    *("--workers", "2", "--grpc-port", "0", "--metrics"),
    *ALLOWED,
)


def test_two_workers_at_one_port(folder):
    asked = 0

    def are_both_asked():
        nonlocal asked
        assert predict(port, "12") == (200, {"predictions": [12]})
        asked += 1
        return len(requests_of_workers(port)) == 2

    options = ("--access-log", *TWO_WORKERS)
    with serving(str(folder), *options) as (process, port):
        other_port = grpc_port(process)
        wait_for_line(process, "2 workers are ready")
        url = f"http://127.0.0.1:{port}/readyz"
        assert urllib.request.urlopen(url, timeout=60).status == 200
        wait_for(are_both_asked, 60)
        assert predict_by_grpc(other_port, "123") == [123]
        wait_for(
            lambda: sum(requests_of_workers(port).values()) == asked + 1, 60
        )
        answers = []
        threads = [
            threading.Thread(target=lambda ask=ask: answers.append(ask()))
            for ask in [
                *[lambda: predict(port, "60000")[1]["predictions"]] * 2,
                lambda: predict_by_grpc(other_port, "60000"),
            ]
        ]
        for thread in threads:
            thread.start()
        threads[0].join(0.5)
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
        out, err = process.communicate(timeout=60)
    assert answers == [[60000]] * 3
    assert process.returncode == 0
    assert err == ""
    assert len([json.loads(line) for line in out.splitlines()]) > asked + 3


@pytest.mark.slow
def test_a_worker_that_is_killed_under_load(folder):
    answers, stopping = [], threading.Event()

    def ask():
        while not stopping.is_set():
            try:
                answers.append(predict(port, "1000"))
            except (OSError, http.client.HTTPException):
                answers.append("closed")  # by the worker that was killed

    with serving(str(folder), *TWO_WORKERS) as (process, port):
        wait_for_line(process, "2 workers are ready")
        workers = psutil.Process(process.pid).children()
        workers = [
            each for each in workers if "spawn_main" in " ".join(each.cmdline())
        ]
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(requests_of_workers(port)) == 2, 60)
        workers[0].kill()
        wait_for_line(process, "worker 1 was ended by signal 9")
        count = len(answers)
        wait_for_line(process, "worker 1 is ready")
        wait_for(lambda: len(requests_of_workers(port)) == 2, 60)
        assert workers[1].is_running()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        stopping.set()
        for thread in threads:
            thread.join(60)
    good = (200, {"predictions": [1000]})
    assert {*map(str, answers)} == {str(good), "closed"}
    assert answers[count:].count(good) > 20  # while there was one worker


@pytest.mark.slow
def test_workers_that_cannot_load_the_model(tmp_path):
    broken = tmp_path / "broken" / "1"
    broken.mkdir(parents=True)
    (broken / "saved_model.pb").write_bytes(b"broken")
    command = [sys.executable, "-m", "kseq", "serve", str(broken.parent)]
    words = ("--port", "0", "--workers", "2")
    done = subprocess.run([*command, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("kseq serve: broken cannot be served: ")
    assert done.stderr.count("\n") == 1


# In every run, tests/server has the end of calls that cannot be cancelled and
# of clients that do not read, and the test above that of a process.
@pytest.mark.slow
def test_the_end_has_a_bound_whatever_runs(folder):
    with serving(str(folder), "--timeout", "1", *ALLOWED) as (process, port):
        connections = []
        for signature, value in (
            ("serving_default", "2000000000"),
            ("for_ever", "for ever"),
        ):
            body = {"signature_name": signature, "instances": [value]}
            body = json.dumps(body).encode()
            connections.append(socket.create_connection(("127.0.0.1", port)))
            connections[-1].sendall(
                b"POST /v1/models/slow:predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body
            )
        for connection in connections:
            assert b" 504 " in connection.recv(100)
        connections[0].sendall(
            b"POST /v1/models/slow:predict HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        for connection in connections:
            connection.close()
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.slow
def test_the_end_does_not_wait_for_who_does_not_read(folder):
    with serving(str(folder), *ALLOWED) as (process, port):
        # 10 MB of answers, more than the buffers of a connection take.
        body = {"signature_name": "much", "instances": ["a"] * 1000}
        body = json.dumps(body).encode()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(
                b"POST /v1/models/slow:predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body
            )
            assert connection.recv(12) == b"HTTP/1.1 200"
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("library", "words", "extra"),
    [
        ("uvicorn", [], "serve"),
        ("prometheus_client", ["--metrics"], "serve"),
        ("tensorflow_serving", ["--grpc-port", "0"], "grpc"),
    ],
)
def test_the_extra_is_named(folder, monkeypatch, capsys, library, words, extra):
    monkeypatch.setitem(sys.modules, library, None)
    assert main(["serve", str(folder), *words]) == 2
    assert f"pip install '.[{extra}]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Expected the PATH of a model"),
        (["missing"], "missing is neither a folder of versions"),
        (["{folder}/7"], "is one version; give the folder"),
        (["{folder}", "{folder}"], "Two models have the name slow"),
        (["{folder}", "--model", "slow={folder}"], "Two models have the name"),
        (["--model", "slow"], "Expected --model NAME=PATH"),
        (["--model", "a/b={folder}"], "Expected --model NAME=PATH"),
        (["--model", "..={folder}"], "Expected --model NAME=PATH"),
        (["--model", ".={folder}"], "Expected --model NAME=PATH"),
        (["--model", "../a={folder}"], "Expected --model NAME=PATH"),
        (["--model", "a\0={folder}"], "Expected --model NAME=PATH"),
        (["--model", "a=missing"], "missing is neither"),
        (["{folder}", "--label", "stable"], r"Expected --label \[NAME:\]LABEL"),
        (["{folder}", "--label", "stable=6"], "has no version 6"),
        (["{folder}", "--label", f"stable={2**63 - 1}"], "has no version 922"),
        (["{folder}", "--label", f"stable={2**63}"], "Expected --label"),
        (["{folder}", "--label", "stable=٣"], "Expected --label"),
        (["{folder}", "--label", "b:stable=7"], "there is no model b"),
        (["{folder}", "--port", "-1"], "an integer from 0 to 65535"),
        (["{folder}", "--port", "65536"], "an integer from 0 to 65535"),
        (["{folder}", "--port", "a"], "expected an integer"),
        (
            ["{folder}", "--port", "0", "--grpc-port", "65536"],
            "--grpc-port: expected an integer from 0",
        ),
        (["{folder}", "--host", "no.such.host.invalid"], "Cannot listen"),
        (["{folder}", "--timeout", "nan"], "--timeout"),
        (["{folder}", "--timeout", "0"], "--timeout"),
        (["{folder}", "--queue-size", "0"], "--queue-size"),
        (["{folder}", "--workers", "0"], "--workers"),
        (["{folder}", "--workers", "1001"], "from 1 to 1000"),
        (["{folder}", "--workers", "1000"], "1000: expected at most"),
        (
            ["{folder}", "--port", "0", "--workers", "2", "--grpc-port", "-1"],
            "--grpc-port: expected an integer from 0",
        ),
        (["{folder}", "--body-limit", "-1"], "--body-limit"),
        (["\0"], "neither a folder"),
    ],
)
def test_wrong_commands_are_one_message(folder, capsys, words, message):
    words = [word.format(folder=folder) for word in words]
    assert main(["serve", *words]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert "Traceback" not in error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_models_are_loaded(
    folder, tmp_path, monkeypatch, sighup, number
):
    def poll(store):
        os.kill(os.getpid(), number)

    monkeypatch.setattr(ModelStore, "poll", poll)
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}")
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)]
    assert main(["serve", str(folder), "--port", "0"]) == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert before == [
        signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)
    ]


def test_sighup_ends_the_server_in_order(folder, monkeypatch, sighup):
    """Also one that comes before it answers, and a second one."""

    def hang_up(self):
        os.kill(os.getpid(), signal.SIGHUP)

    async def startup(self, sockets=None):
        hang_up(self)
        await uvicorn.Server.startup(self, sockets)

    monkeypatch.setattr(server_module._Server, "startup", startup)
    monkeypatch.setattr(ModelStore, "close", hang_up)
    monkeypatch.setattr(server_module, "_end_after", lambda *_: None)
    assert main(["serve", str(folder), "--port", "0", *ALLOWED]) == 0


def test_a_port_in_use(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", str(folder), "--port", str(port)]) == 2
        assert (
            main(
                ["serve", str(folder), "--port", "0", "--grpc-port", str(port)]
            )
            == 2
        )
    assert capsys.readouterr().err.count("Address already in use") == 2


def test_answers_do_not_wait_for_acknowledgements(folder, monkeypatch):
    found = []

    def look(folders, labels, listening, options, exports):
        found.append(
            listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        )

    monkeypatch.setattr(serve, "_serve", look)
    assert main(["serve", str(folder), "--port", "0"]) == 0
    assert found and found[0]


@pytest.mark.parametrize("part", ["", "1", "1/saved_model.pb"])
def test_what_cannot_be_read(tmp_path, monkeypatch, capsys, caplog, part):
    for name in ("a", "b"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "saved_model.pb").touch()
    failing = tmp_path / "a" / part if part else tmp_path / "a"
    FailingDisk(monkeypatch).errors[failing] = "EACCES"
    assert main(["serve", str(tmp_path / "a")]) == 2
    message = f"{tmp_path / 'a'}.* cannot be read: Permission denied"
    assert re.search(message, capsys.readouterr().err)
    models = serve._found([tmp_path])  # the others are served
    assert list(models) == [("b", tmp_path / "b")]
    assert re.search(f"{message}. It is not served", caplog.text)


def test_two_versions_with_one_label(tmp_path, capsys):
    for name in ("1", "2"):
        (tmp_path / "m" / name).mkdir(parents=True)
        (tmp_path / "m" / name / "saved_model.pb").touch()
    options = ("--label", "stable=1", "--label", "m:stable=2")
    assert main(["serve", str(tmp_path / "m"), *options]) == 2
    message = "Versions 1 and 2 of m have the label stable"
    assert message in capsys.readouterr().err


def test_labels_of_any_name_of_a_version(tmp_path):
    last = 2**63 - 1
    for name in ("0012", f"{last}"):
        (tmp_path / "m" / name).mkdir(parents=True)
        (tmp_path / "m" / name / "saved_model.pb").touch()
    models = {"m": tmp_path / "m"}
    for text in ("old=12", "old=0012", "m:old=12"):
        label = serve._label(text)
        assert serve._version(*label, models) == (("m", "old"), 12)
    label = serve._label(f"new={last}")
    assert serve._version(*label, models) == (("m", "new"), last)


def test_a_model_that_cannot_be_loaded(tmp_path, capsys):
    broken = tmp_path / "broken" / "1"
    broken.mkdir(parents=True)
    (broken / "saved_model.pb").write_bytes(b"broken")
    assert main(["serve", str(broken.parent), "--port", "0"]) == 2
    assert "broken cannot be served: " in capsys.readouterr().err


def test_a_model_needs_a_name_that_is_text(folder, tmp_path, capfd):
    name = os.fsdecode(b"n\xff")
    (tmp_path / name).symlink_to(folder)
    assert main(["serve", str(tmp_path)]) == 2
    assert r"'n\udcff' is not a valid model name" in capfd.readouterr().err
