"""What a server gives others while one client attacks it.

Starts `kseq serve` with two small untrained models, a translator and a
classifier of documents, or with those of a folder. For each attack it prints
the peak of the resident memory, the worst time of another client's `:predict`
and of `/healthz`, and the statuses that the attacker and the others got.

    python -m tests.benchmarks.hostile_load
    python -m tests.benchmarks.hostile_load --options "--body-limit 64"
    python -m tests.benchmarks.hostile_load --kseq ANOTHER_CLONE

A server that takes more than `--most` GiB is killed, and so reported.
"""

import argparse
import collections
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
import time
from pathlib import Path

PREDICT = "/v1/models/translator:predict"
CLASSIFY = "/v1/models/classifier:predict"
MIB = 2**20
STALL = 12  # seconds that stalled uploads and idle connections are held


def make_models(folder):
    """Exports a translator whose answers are long, and a classifier."""
    import keras

    from kseq import data, decoding, layers, models, serving
    from kseq.control_tokens import END, UNK
    from kseq.data.documents.dispatch_reports import dispatch_reports

    keras.utils.set_random_seed(1)
    lines = ["the quick brown fox jumps over the lazy dog 0123456789"]
    tokenizer = data.Tokenizer.train(lines, 100, "char")
    size = tokenizer.vocab_size
    model = models.LSTMSeq2Seq(
        *(size, size),
        embedding_dim=32,
        units=64,
        attention=layers.LuongAttention("dot"),
    )
    bias = model.projection.bias.numpy()
    bias[[UNK, END]] -= 9  # answers are as long as they may be
    model.projection.bias.assign(bias)
    translator = serving.Generator(
        model,
        data.TextPreprocessor(tokenizer),
        tokenizer,
        decoding.BeamSearch(beam_size=2),
    )
    serving.export(translator, folder / "translator")

    documents = dispatch_reports("train", size=50)
    preprocessor = data.DocumentPreprocessor.train(documents, 400)
    classes = models.HierarchicalAttention(
        *(400, 3), embedding_dim=16, units=16, attention_units=16
    )
    served = serving.Classifier(classes, preprocessor, ("a", "b", "c"))
    serving.export(served, folder / "classifier")


class Server:
    """A `kseq serve` in a process of its own."""

    def __init__(self, models, options):
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kseq", "serve", str(models)),
                *("--port", "0", "--grpc-port", "0"),
                *options.options.split(),
            ],
            cwd=options.kseq,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self.most = options.most * 2**30
        self.was_killed = False
        self.port, self.grpc_port = self._ports()
        self._file = Path(f"/proc/{self.process.pid}/status")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _ports(self):
        found = {}
        while len(found) < 2:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError("kseq serve did not start")
            if match := re.search(r"(Page|gRPC): .*:(\d+)/?$", line):
                found[match[1]] = int(match[2])
        return found["Page"], found["gRPC"]

    def _watch(self):
        with contextlib.suppress(OSError, KeyError):
            while self.process.poll() is None:
                if self.memory("VmRSS") > self.most:
                    self.was_killed = True
                    self.process.kill()
                time.sleep(0.02)

    def memory(self, name):
        """Bytes: VmRSS now, VmHWM at most."""
        found = dict(
            line.split(":", 1) for line in self._file.read_text().splitlines()
        )
        return int(found[name].split()[0]) * 1024

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def request(self, path, body=None, timeout=120, headers=()):
        """Status, and seconds; a name of an error where there is none."""
        start = time.perf_counter()
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=timeout
        )
        try:
            with contextlib.closing(connection):
                method = "GET" if body is None else "POST"
                connection.request(method, path, body, dict(headers))
                answer = connection.getresponse()
                answer.read()
                status = answer.status
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        return status, time.perf_counter() - start


class Others:
    """Clients that go on asking while the server is attacked."""

    def __init__(self, server):
        self.server = server
        self.worst = collections.Counter()
        self.statuses = collections.Counter()
        self._stop = threading.Event()
        small = json.dumps({"instances": ["the fox"]})
        self._threads = [
            threading.Thread(target=self._ask, args=each)
            for each in ((PREDICT, small), ("/healthz", None))
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *error):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, path, body):
        while not self._stop.wait(0.05):
            status, seconds = self.server.request(path, body)
            self.worst[path] = max(self.worst[path], seconds)
            self.statuses[status] += 1
            if self.server.process.poll() is not None:
                return


def at_once(server, requests):
    """Statuses of requests that are sent at the same time."""
    found = []
    threads = [
        threading.Thread(target=lambda r=r: found.append(server.request(*r)))
        for r in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [status for status, _ in found]


def explain(server):
    texts = ["the quick brown fox " * 200, *"a" * 2000]
    body = {"signature_name": "explain", "inputs": texts}
    return at_once(server, [(PREDICT, json.dumps(body))])


def explain_more(server):
    texts = ["the quick brown fox " * 200, *"a" * 10_000]
    body = {"signature_name": "explain", "inputs": texts}
    return at_once(server, [(PREDICT, json.dumps(body))] * 4)


def explain_documents(server):
    texts = ["A report of many words comes. " * 100, *"a" * 8000]
    body = {"signature_name": "explain", "inputs": texts}
    return at_once(server, [(CLASSIFY, json.dumps(body))])


def lists():
    return b'{"instances":[%s]}' % (b"[]," * (20 * MIB))[:-1]


def one_body_of_lists(server):
    return at_once(server, [(PREDICT, lists())])


def four_bodies_of_lists(server):
    return at_once(server, [(PREDICT, lists())] * 4)


def small_objects(server):
    more = b",".join([b'{"":0}'] * (8 * MIB))
    body = b'{"instances":["a"],"x":[%s]}' % more
    return at_once(server, [(PREDICT, body)])


def lists_that_are_allowed(server):
    body = b'{"instances":["a"],"x":[%s]}' % (b"[]," * 400_000)[:-1]
    return at_once(server, [(PREDICT, body)] * 4)


def long_text(server):
    text = "the quick brown fox " * (16 * MIB // 20)
    return at_once(server, [(PREDICT, json.dumps({"instances": [text]}))])


def long_text_that_is_allowed(server):
    text = "the quick brown fox " * (39 * MIB // 200)
    return at_once(server, [(PREDICT, json.dumps({"instances": [text]}))] * 4)


def grpc_messages(server):
    import grpc
    from tensorflow.core.framework.tensor_pb2 import TensorProto
    from tensorflow_serving.apis.predict_pb2 import PredictRequest
    from tensorflow_serving.apis.prediction_service_pb2_grpc import (
        PredictionServiceStub,
    )

    tensor = TensorProto(
        dtype=7,
        string_val=[bytes(60 * MIB)],
        tensor_shape={"dim": [{"size": 1}]},
    )
    request = PredictRequest(
        model_spec={"name": "translator"}, inputs={"text": tensor}
    )
    options = [("grpc.max_send_message_length", -1)]
    address = f"127.0.0.1:{server.grpc_port}"
    with grpc.insecure_channel(address, options) as channel:
        stub = PredictionServiceStub(channel)
        calls = [stub.Predict.future(request, 120) for _ in range(40)]
        return [call.code().name for call in calls]


def head(length):
    return (
        f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def stalled_uploads(server):
    length, found = 64 * MIB, []
    if server.request(PREDICT, b" " * (length - 1))[0] == 413:
        length = 4 * MIB
    end = time.monotonic() + STALL
    while time.monotonic() < end:
        with contextlib.ExitStack() as stack:
            sockets = []
            for _ in range(4):
                made = socket.create_connection(("127.0.0.1", server.port))
                stack.enter_context(made)
                made.settimeout(max(end - time.monotonic(), 0.1))
                with contextlib.suppress(OSError):
                    made.sendall(head(length) + b" " * (length - 1))
                sockets.append(made)
            for made in sockets:
                try:
                    found.append(int(made.recv(12).split()[1]))
                except (OSError, IndexError) as error:
                    found.append(type(error).__name__)
    return found


def idle_connections(server):
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(520):
            with contextlib.suppress(OSError):
                made = socket.create_connection(("127.0.0.1", server.port))
                stack.enter_context(made)
                made.sendall(ask)
        time.sleep(STALL)
    return ["held"]


ATTACKS = {
    "explain, 12 KiB": explain,
    "explain, 4 x 51 KiB": explain_more,
    "explain of documents, 40 KiB": explain_documents,
    "[], 60 MiB": one_body_of_lists,
    "[], 4 x 60 MiB": four_bodies_of_lists,
    '{"":0}, 56 MiB': small_objects,
    "[], 4 x 1.2 MiB": lists_that_are_allowed,
    "a text of 16 MiB": long_text,
    "4 texts of 3.9 MiB": long_text_that_is_allowed,
    "gRPC, 40 x 60 MiB": grpc_messages,
    "four stalled uploads": stalled_uploads,
    "520 idle connections": idle_connections,
}


def show(name, server, others, found):
    peak = server.memory("VmHWM") / 2**30 if not server.was_killed else None
    memory = f"{peak:6.2f}" if peak else "killed"
    print(
        f"{name:30} {memory} {others.worst[PREDICT]:8.2f} "
        f"{others.worst['/healthz']:8.2f}  {shown(found)} | "
        f"{shown(others.statuses)}",
        flush=True,
    )


def shown(statuses):
    counts = collections.Counter(statuses)
    return ", ".join(f"{n} x {each}" for each, n in counts.items())


def attack(models, options, names):
    server = Server(models, options)
    for name in names:
        if server.process.poll() is not None:
            server = Server(models, options)
        server.forget_peak()
        with Others(server) as others:
            found = ATTACKS[name](server)
        show(name, server, others, found)
    return server


def end_under_attack(server):
    """Seconds from SIGTERM to the end, while the worst is answered."""
    texts = ["the quick brown fox " * 200, *"a" * 10_000]
    body = json.dumps({"signature_name": "explain", "inputs": texts})
    for _ in range(4):
        threading.Thread(
            target=server.request, args=(PREDICT, body), daemon=True
        ).start()
    half = socket.create_connection(("127.0.0.1", server.port))
    half.sendall(head(1000) + b"{")
    time.sleep(2)
    start = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    try:
        code = server.process.wait(90)
    except subprocess.TimeoutExpired:
        code = "none"
        server.process.kill()
    half.close()
    seconds = time.monotonic() - start
    print(f"SIGTERM: {seconds:.1f} s, exit code {code}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="?", type=Path, help="a folder")
    parser.add_argument("--options", default="", help="of kseq serve")
    parser.add_argument("--kseq", type=Path, help="a clone to start it from")
    parser.add_argument("--most", type=float, default=4.0, metavar="GIB")
    parser.add_argument("--only", nargs="+", choices=ATTACKS)
    options = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    with tempfile.TemporaryDirectory() as folder:
        models = options.models and options.models.absolute()
        if models is None:
            models = Path(folder)
            make_models(models)
        print(
            f"{'':30} {'GiB':>6} {'predict':>8} {'healthz':>8}  "
            "statuses of the attacker | of others"
        )
        server = attack(models, options, options.only or ATTACKS)
        if server.process.poll() is None:
            end_under_attack(server)


if __name__ == "__main__":
    main()
