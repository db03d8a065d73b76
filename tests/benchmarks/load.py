"""Requests per second and latencies of `kseq serve` under load.

    python tests/benchmarks/load.py saved_models/dates LINES

Clients on this machine send a line of LINES each, and the next one as soon as
they have their answer: 1, 8 and 64 of them. Compared are the server, the server
that answers each request alone, servers of several processes (`--workers 2 4`),
and the signature called in this process, a line a call and 32 lines a call.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401, it has the operations of tokenizers

_ALONE = "import kseq.server.batcher as b; assert b.ROWS; b.ROWS = 1; "
_START = "import sys; from kseq.cli import main; sys.exit(main())"


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="saved_models/NAME")
    parser.add_argument("lines", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--workers", type=int, nargs="+", default=[])
    options = parser.parse_args()
    lines = options.lines.read_text("utf-8").splitlines()

    names = ("clients", "requests/s", "p50", "p95", "p99 ms")
    print("{:24} {:>7} {:>10} {:>7} {:>7} {:>7}".format("", *names))
    servers = [("server", _START, 1), ("each alone", _ALONE + _START, 1)]
    servers += [(f"{n} workers", _START, n) for n in options.workers]
    for name, code, workers in servers:
        with serving(options.folder, code, workers) as port:
            measure(options.folder.name, port, lines, 1, 2.0)
            for clients in options.clients:
                times, wall = measure(
                    options.folder.name, port, lines, clients, options.seconds
                )
                show(name, clients, len(times) / wall, times)
    for rows in (1, 32):
        times, wall = in_process(options, lines, rows)
        show(f"in process, {rows} a call", 1, rows * len(times) / wall, times)


def show(name, clients, rate, times):
    """Prints a row."""
    percentiles = np.percentile(times, (50, 95, 99)) * 1000
    shown = " ".join(f"{value:7.1f}" for value in percentiles)
    print(f"{name:24} {clients:7} {rate:10.1f} {shown}", flush=True)


@contextlib.contextmanager
def serving(folder, code, workers):
    """The port of a server."""
    words = ("serve", str(folder), "--port", "0", "--workers", str(workers))
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                port = int(found[1])
            if "workers are ready" in line or (found and workers == 1):
                break
        yield port
    finally:
        process.terminate()
        process.communicate()


def measure(model, port, lines, clients, seconds):
    """(seconds of each request, seconds of all)."""
    times = []
    start = time.perf_counter()
    threads = [
        threading.Thread(
            target=client,
            args=(model, port, lines[i::clients], start + seconds, times),
        )
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, time.perf_counter() - start


def client(model, port, lines, end, times):
    """Sends lines, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for line in itertools.cycle(lines):
        begun = time.perf_counter()
        if begun > end:
            break
        body = json.dumps({"instances": [line]})
        connection.request("POST", f"/v1/models/{model}:predict", body)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {content[:200]}")
        times.append(time.perf_counter() - begun)
    connection.close()


def in_process(options, lines, rows):
    """(seconds of each call, seconds of all)."""
    version = max(
        (path for path in options.folder.iterdir() if path.name.isdecimal()),
        key=lambda path: int(path.name),
    )
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    signature(text=tf.constant(lines[:rows]))
    times, start = [], time.perf_counter()
    for first in itertools.cycle(range(0, len(lines) - rows + 1, rows)):
        begun = time.perf_counter()
        if begun > start + options.seconds:
            break
        signature(text=tf.constant(lines[first : first + rows]))["text"].numpy()
        times.append(time.perf_counter() - begun)
    return times, time.perf_counter() - start


if __name__ == "__main__":
    main()
