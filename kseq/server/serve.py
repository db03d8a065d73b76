"""The process that answers HTTP."""

import contextlib
import json
import logging
import os
import sys
import threading

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kseq.server.rest import rest_app

_POLL = 1.0  # seconds
_HEADERS = 20.0  # seconds until the headers of a request must have come
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class _Protocol(H11Protocol):
    """Closes connections whose first request does not come in time."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self.loop.call_later(_HEADERS, self._close_if_silent)

    def _close_if_silent(self):
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def serve(store, listening, options):
    """Answers until SIGTERM or Ctrl-C, then what is in flight.

    Args:
        store: `ModelStore`, which is polled every second.
        listening: socket.
        options: of `kseq serve`.
    """
    host, port = listening.getsockname()[:2]
    app = rest_app(
        store,
        hosts=(*_LOCAL, *options.allow_host, options.host),
        body_limit=options.body_limit * 2**20,
        timeout=options.timeout,
        queue_size=options.queue_size,
        num_threads=max(os.cpu_count() or 1, 2),
        log=_print_json if options.access_log else None,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            access_log=False,
            server_header=False,
            log_level=logging.ERROR,
            timeout_keep_alive=75,
            h11_max_incomplete_event_size=64 * 1024,
        )
    )
    stopping = threading.Event()
    polling = threading.Thread(target=_poll, args=(store, stopping))
    polling.start()
    for name in store.folders:
        version = store.newest(name).version
        _print(
            f"{name}, version {version}: "
            f"http://{_shown(host)}:{port}/v1/models/{name}:predict",
            sys.stderr,
        )
    try:
        server.run(sockets=[listening])
    finally:
        stopping.set()
        app.close()
        polling.join()
        store.close()


def _poll(store, stopping):
    while not stopping.wait(_POLL):
        for line in store.poll():
            _print(line, sys.stderr)


def _shown(host):
    return f"[{host}]" if ":" in host else host


def _print_json(record):
    _print(json.dumps(record), sys.stdout)


def _print(line, file):
    """Prints a line; one that nobody can read any more fails no request."""
    with contextlib.suppress(OSError):
        print(line, file=file, flush=True)
