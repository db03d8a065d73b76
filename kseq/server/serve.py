"""The process that answers HTTP and gRPC."""

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading

import uvicorn

from kseq.server.batcher import Batcher
from kseq.server.body_memory import BodyMemory
from kseq.server.http_protocol import HttpProtocol
from kseq.server.rest_app import RestApp
from kseq.user_error import UserError

_POLL = 1.0  # seconds
_BODIES = 4  # of full size, that are held at once
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class _Server(uvicorn.Server):
    """Starts and stops gRPC along with HTTP, in one event loop.

    Args:
        config: `uvicorn.Config`.
        make_grpc: callable that returns a `grpc.aio.Server`, or None.
        grace: float, seconds that it may take to stop; then connections are
            ended, also of clients that do not read their answers.
    """

    def __init__(self, config, make_grpc, grace):
        super().__init__(config)
        self.make_grpc = make_grpc
        self.grace = grace
        self.grpc = None

    async def startup(self, sockets=None):
        await super().startup(sockets)
        if self.make_grpc:
            self.grpc = self.make_grpc()
            await self.grpc.start()

    async def shutdown(self, sockets=None):
        asyncio.get_running_loop().call_later(self.grace, self._abort)
        ends = [super().shutdown(sockets)]
        if self.grpc:
            ends.append(self.grpc.stop(self.grace))
        await asyncio.gather(*ends)

    def _abort(self):
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def serve(store, listening, options):
    """Answers until SIGTERM or Ctrl-C, then what is in flight.

    Args:
        store: `ModelStore`, which is polled every second.
        listening: socket.
        options: of `kseq serve`.
    """
    metrics = _metrics(store) if options.metrics else None
    batcher = Batcher(
        options.queue_size,
        num_threads=max(os.cpu_count() or 1, 2),
        observe=metrics and metrics.observe_call,
    )
    if metrics:
        metrics.watch(batcher)
    limits = {
        "body_limit": options.body_limit * 2**20,
        "timeout": options.timeout,
        "memory": BodyMemory(_BODIES * options.body_limit * 2**20),
        "log": _log(metrics, options.access_log),
    }
    app = RestApp(
        store,
        batcher,
        hosts=(*_LOCAL, *options.allow_host, options.host),
        metrics=metrics and metrics.text,
        is_stopping=lambda: server.should_exit,
        **limits,
    )
    make_grpc = None
    if options.grpc_port is not None:
        make_grpc = _grpc(store, batcher, options, limits)
    server = _Server(_config(app), make_grpc, grace=options.timeout)
    stopping = threading.Event()
    polling = threading.Thread(target=_poll, args=(store, stopping))
    polling.start()
    _print_routes(store, *listening.getsockname()[:2])
    try:
        server.run(sockets=[listening])
    finally:
        stopping.set()
        batcher.close()
        polling.join()
        store.close()


def _config(app):
    return uvicorn.Config(
        app,
        http=HttpProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        server_header=False,
        log_level=logging.ERROR,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=64 * 1024,
    )


def _metrics(store):
    from kseq.server.metrics import Metrics

    return Metrics(store)


def _grpc(store, batcher, options, limits):
    """Function that makes the gRPC server, when the event loop runs."""
    from kseq.server.grpc_services import grpc_server

    def make():
        server = grpc_server(store, batcher, **limits)
        address = f"{_shown(options.host)}:{options.grpc_port}"
        try:
            port = server.add_insecure_port(address)
        except RuntimeError as error:  # it was free before the models came
            raise UserError(f"Cannot listen at {address}: {error}") from None
        _print(f"gRPC: {_shown(options.host)}:{port}", sys.stderr)
        return server

    return make


def _log(metrics, is_printed):
    """Callable of what is known of a request; None if nobody asks."""
    takers = [metrics.observe] if metrics else []
    if is_printed:
        takers.append(_print_json)

    def log(record):
        for take in takers:
            take(record)

    return log if takers else None


def _poll(store, stopping):
    while not stopping.wait(_POLL):
        try:
            lines = store.poll()
        except Exception as error:  # the next poll may succeed
            lines = [f"The models cannot be polled: {error!r}"]
        for line in lines:
            _print(line, sys.stderr)


def _print_routes(store, host, port):
    for name in store.folders:
        version = store.newest(name).version
        _print(
            f"{name}, version {version}: "
            f"http://{_shown(host)}:{port}/v1/models/{name}:predict",
            sys.stderr,
        )
    _print(f"Page: http://{_shown(host)}:{port}/", sys.stderr)


def _shown(host):
    return f"[{host}]" if ":" in host else host


def _print_json(record):
    _print(json.dumps(record), sys.stdout)


def _print(line, file):
    """Prints a line; one that nobody can read any more fails no request."""
    with contextlib.suppress(OSError):
        print(line, file=file, flush=True)
