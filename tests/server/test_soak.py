"""A server of a real export, under load for minutes."""

import http.client
import json
import re
import shutil
import threading
import time

import keras
import numpy as np
import pytest

from kseq.loading import load_export
from kseq.serving import export
from tests.commands.test_serve import metrics, serving
from tests.server.real_exports import make_served

pytestmark = pytest.mark.slow

CLIENTS = 8
MINUTES = 10
SWAP = 20  # seconds between two versions
REQUESTS = 10_000
FLAT = 1.1  # a process may still grow by as much once it is warm


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Two exports of other weights, and a broken one."""
    folder = tmp_path_factory.mktemp("versions")
    served = make_served("translator")
    found = [export(served, folder)]
    for weight in served.model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    found.append(export(served, folder))
    broken = shutil.copytree(found[0], folder / "broken")
    graph = broken / "saved_model.pb"
    graph.write_bytes(graph.read_bytes()[:-200])
    return [*found, broken]


def any_texts(count):
    """Texts of known and unknown characters, of none and up to 500."""
    draw = np.random.default_rng(1)
    letters = list("the cat sat on a dog 12 ßéΩ日")
    lengths = draw.integers(0, 500, count) ** 2 // 500
    return ["".join(draw.choice(letters, length)) for length in lengths]


def resident(port):
    """MiB of memory of the server."""
    found = re.search(
        r"^process_resident_memory_bytes (\S+)", metrics(port), re.M
    )
    return float(found[1]) / 2**20


class Clients:
    """Threads that send requests and keep what went wrong."""

    def __init__(self, port, path, check):
        self.port, self.path, self.check = port, path, check
        self.failures, self.count = [], 0
        self.stopping = threading.Event()
        self.threads = [
            threading.Thread(target=self._send_all, args=(seed,))
            for seed in range(CLIENTS)
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *problem):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def _send_all(self, seed):
        draw = np.random.default_rng(seed)
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=60
        )
        while not self.stopping.is_set() and not self.failures:
            try:
                self._send(draw, connection)
            except Exception as error:
                self.failures.append(repr(error))
        connection.close()

    def _send(self, draw, connection):
        texts, expected = self.check(draw)
        body = json.dumps({"inputs": texts})
        connection.request("POST", self.path, body)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != 200:
            self.failures.append(content)
        elif expected and content["outputs"]["text"] not in expected:
            self.failures.append((texts, content, expected))
        self.count += 1


def test_versions_come_and_go_under_load(versions, install, tmp_path):
    """No request fails, each answer is of one version, memory is flat."""
    base = tmp_path / "saved_models" / "m"
    texts = any_texts(200)
    answers = [load_export(path)(texts) for path in versions[:2]]
    differ = sum(one != other for one, other in zip(*answers, strict=True))
    assert differ > 150

    def check(draw):
        rows = draw.integers(0, len(texts), draw.integers(1, 4))
        return [texts[row] for row in rows], [
            [found[row] for row in rows] for found in answers
        ]

    install(versions[0], base / "1")
    with serving(str(base), "--metrics") as (process, port):
        end = time.monotonic() + 60 * MINUTES
        memory, number = [], 1
        with Clients(port, "/v1/models/m:predict", check) as clients:
            while time.monotonic() < end and not clients.failures:
                clients.stopping.wait(SWAP)
                number += 1
                install(versions[number % 3], base / str(number))
                if number > 4:
                    shutil.rmtree(base / str(number - 4))
                memory.append(resident(port))
        print(f"{clients.count} requests, {number} versions, MiB: {memory}")
        assert clients.failures == []
        assert process.poll() is None
    third = len(memory) // 3
    assert max(memory[-third:]) < FLAT * max(memory[:third])


def test_requests_of_any_length(versions, install, tmp_path):
    """Memory is flat once each kind of length was seen."""
    base = tmp_path / "saved_models" / "m"
    install(versions[0], base / "1")
    texts = any_texts(REQUESTS)

    def check(draw):
        return [texts[draw.integers(REQUESTS)]], None

    with serving(str(base), "--metrics") as (_, port):
        memory = []
        with Clients(port, "/v1/models/m:predict", check) as clients:
            while clients.count < REQUESTS and not clients.failures:
                clients.stopping.wait(1)
                memory.append((clients.count, resident(port)))
        assert clients.failures == []
    warm = max(mib for count, mib in memory if count < REQUESTS / 4)
    print(f"{warm:.0f} MiB after a quarter, {memory[-1][1]:.0f} at the end")
    assert memory[-1][1] < FLAT * warm
