"""The process that answers HTTP and gRPC."""

import asyncio
import contextlib
import functools
import json
import logging
import os
import signal
import sys
import threading

import uvicorn
from tensorflow.core.framework import types_pb2

from kseq.process import discard_lost_output, stop_signals
from kseq.server.batcher import Batcher
from kseq.server.body_memory import BodyMemory, request_memory
from kseq.server.http_protocol import HttpProtocol
from kseq.server.rest_app import RestApp
from kseq.server.shared_metrics import SharedMetrics
from kseq.sources import source_named
from kseq.user_error import UserError

_POLL = 1.0  # seconds
_GRACE = 20.0  # seconds for what is in flight; schedulers kill after 30
_CANCELLING = 5.0  # seconds more for what is cancelled then
_BODY, _LARGE_BODY = 4, 64  # MiB


class _Server(uvicorn.Server):
    """Starts and stops gRPC along with HTTP, in one event loop.

    Args:
        config: `uvicorn.Config`.
        make_grpc: callable that returns a `grpc.aio.Server`, or None.
        grace: float, seconds that it may take to stop; then connections are
            closed, even of clients that do not read their answers.
        on_signal: callable that is called at the first signal to stop.
        on_started: callable that is called when requests are answered.
    """

    def __init__(
        self, config, make_grpc, grace, on_signal=None, on_started=None
    ):
        super().__init__(config)
        self.make_grpc = make_grpc
        self.grace = grace
        self.on_signal = on_signal
        self.on_started = on_started
        self.grpc = None
        self._signals = set()

    @contextlib.contextmanager
    def capture_signals(self):
        """Signals end the server, which returns, or raises KeyboardInterrupt.

        SIGTERM and SIGHUP have no effect afterwards: they may come twice.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        for number in stop_signals():
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        if signal.SIGINT in self._signals:
            signal.raise_signal(signal.SIGINT)

    def handle_exit(self, sig, frame):
        discard_lost_output()
        self._signals.add(sig)
        if self.on_signal and not self.should_exit:
            self.on_signal()
        super().handle_exit(sig, frame)

    async def startup(self, sockets=None):
        await super().startup(sockets)
        if self.make_grpc:
            self.grpc = self.make_grpc()
            await self.grpc.start()
        if self.on_started:
            self.on_started()

    async def shutdown(self, sockets=None):
        asyncio.get_running_loop().call_later(self.grace, self._abort)
        ends = [super().shutdown(sockets)]
        if self.grpc:
            ends.append(self.grpc.stop(self.grace))
        await asyncio.gather(*ends)

    def _abort(self):
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def serve(store, listening, options, clean_up=lambda: None, worker=None):
    """Serves until a signal to stop, then answers the requests in flight.

    The latter takes up to 20 seconds, or `--timeout` if that is less. A call
    that cannot be cancelled does not keep the process alive: five seconds later
    the process ends with all its threads.

    Args:
        store: `ModelStore`, which is polled every second.
        listening: socket.
        options: of `kseq serve`.
        clean_up: callable that deletes what must not outlive the process.
        worker: `kseq.commands.serve_workers.Worker` if this process is one of
            several, or None.
    """
    metrics = None
    if options.metrics:
        from kseq.server.metrics import Metrics

        metrics = Metrics(store)
    shared = SharedMetrics(metrics, worker) if metrics and worker else metrics
    batcher = Batcher(
        options.queue_size,
        num_threads=max((os.cpu_count() or 1) // options.workers, 2),
        observe=metrics and metrics.observe_call,
        observe_wait=metrics and metrics.observe_wait,
    )
    body_limit = (options.body_limit or _usual_body_limit(store)) * 2**20
    memory = BodyMemory(request_memory(body_limit))
    if metrics:
        metrics.watch(batcher, memory)
    limits = {
        "body_limit": body_limit,
        "timeout": options.timeout,
        "memory": memory,
        "log": _log(metrics, options.access_log),
        "unready": lambda: _unready(server, worker),
    }
    app = RestApp(
        store,
        batcher,
        hosts=("localhost", *options.allow_host, options.host),
        metrics=shared and shared.text,
        **limits,
    )
    make_grpc = None
    if options.grpc_port is not None:
        make_grpc = _grpc(store, batcher, options, limits, worker)
    grace = min(options.timeout, _GRACE)
    server = _Server(
        _config(app),
        make_grpc,
        grace,
        lambda: _end_after(grace + _CANCELLING, clean_up),
        worker and worker.tell_ready,
    )
    stopping = threading.Event()
    repeated = [functools.partial(_poll, store, worker)]
    if shared is not metrics:
        shared.write()
        repeated.append(shared.write)
    threads = [
        threading.Thread(target=_repeat, args=(act, stopping))
        for act in repeated
    ]
    try:
        for thread in threads:
            thread.start()
        if worker is None or worker.is_first:
            _print_routes(store, *listening.getsockname()[:2])
        server.run(sockets=[listening])
    finally:
        stopping.set()
        batcher.close(0.0)  # whoever waited for an answer has it, or has left
        for thread in filter(threading.Thread.is_alive, threads):
            thread.join()
        store.close()


def _unready(server, worker):
    if server.should_exit:
        return "the server is stopping"
    if worker and not worker.all_ready.value:
        return "a worker is being started"
    return ""


def _end_after(seconds, clean_up):
    """Ends the process after some seconds, whatever its threads do."""

    def end():
        clean_up()
        for file in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                file.flush()
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _usual_body_limit(store):
    """MiB: pictures, recordings and features are larger than texts."""
    are_large = any(
        _is_large(name, info)
        for model in store.folders
        for signature in store.newest(model).signatures.values()
        for name, info in signature.inputs.items()
    )
    return _LARGE_BODY if are_large else _BODY


def _is_large(name, info):
    if info.dtype == types_pb2.DT_STRING:
        return source_named(name).is_file
    shape = info.tensor_shape
    return shape.unknown_rank or len(shape.dim) > 1


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


def _grpc(store, batcher, options, limits, worker):
    """Function that makes the gRPC server, when the event loop runs."""
    from kseq.server.grpc_services import grpc_server

    def make():
        shares_port = worker is not None
        server = grpc_server(store, batcher, **limits, shares_port=shares_port)
        address = f"{_shown(options.host)}:{options.grpc_port}"
        try:
            port = server.add_insecure_port(address)
        except RuntimeError as error:  # it was free before models were loaded
            raise UserError(f"Cannot listen at {address}: {error}") from None
        if worker is None or worker.is_first:
            _print(f"gRPC: {_shown(options.host)}:{port}", sys.stderr)
        return server

    return make


def _log(metrics, is_printed):
    """A callable that takes the record of a request."""
    takers = [metrics.observe] if metrics else []
    if is_printed:
        takers.append(_print_json)

    def log(record):
        for take in takers:
            take(record)

    return log


def _repeat(act, stopping):
    while not stopping.wait(_POLL):
        act()


def _poll(store, worker):
    try:
        lines = store.poll()
    except Exception as error:  # the next poll may succeed
        lines = [f"The models cannot be polled: {error!r}"]
    for line in lines:
        _print(f"{worker.name}: {line}" if worker else line, sys.stderr)


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
    """Prints a line at once; if the output is closed, requests do not fail."""
    with contextlib.suppress(OSError):
        file.write(f"{line}\n")  # `print` may write twice: others write, too
        file.flush()
