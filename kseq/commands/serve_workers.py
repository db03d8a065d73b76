"""Several processes that serve the same models at the same ports."""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple

from kseq.process import stop_signals
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_PAUSE = 1.0  # seconds until a worker that has died is started again
_MOST_PAUSES = 32  # where it dies again and again before it is ready
_LEAVING = 5.0  # seconds for a process whose work has ended
_ENDING = 27.0  # seconds; a worker takes 25, and schedulers kill after 30


class Worker(NamedTuple):
    """What a worker process knows of itself and of the others.

    Args:
        number: int, from 1.
        is_restarted: bool, whether it replaces one that has died.
        all_ready: shared value, true while every worker answers.
        main: `Connection` to the main process.
        folder: `pathlib.Path`, of a file of each worker.
    """

    number: int
    is_restarted: bool
    all_ready: Any
    main: connection.Connection
    folder: Path

    @property
    def name(self):
        return f"worker {self.number}"

    @property
    def is_first(self):
        """Whether it prints what would be the same for all workers."""
        return self.number == 1 and not self.is_restarted

    @property
    def file(self):
        """The file that it writes and the others read."""
        return self.folder / f"{self.number}.worker"

    def tell_ready(self):
        """Tells the main process that it answers."""
        self.main.send(None)


def run_workers(count, work, folder, sockets):
    """Runs a function in several processes, until a signal to stop.

    A worker that dies is started again; the others are not affected. At the end
    all get SIGTERM, and those that are left after 27 seconds are killed. They
    also get it when this process dies.

    Args:
        count: int.
        work: callable of a `Worker`, which can be pickled. It tells when it is
            ready, and returns after SIGTERM.
        folder: `pathlib.Path`, of a file of each worker.
        sockets: list of the sockets that the workers share. This process closes
            its own before they are stopped.

    Raises:
        KeyboardInterrupt: at the end, after Ctrl-C.
        UserError: a worker died before all were ready for the first time, if it
            did not send an error of its own.
    """
    workers = _Workers(count, work, folder)
    with _signals() as signals:
        try:
            workers.run(signals)
        finally:
            for each in sockets:
                each.close()
            workers.stop()
        if signal.SIGINT in signals.recv(1024):
            raise KeyboardInterrupt


class _Workers:
    """The processes of the workers."""

    def __init__(self, count, work, folder):
        self._count, self._work, self._folder = count, work, folder
        self._context = multiprocessing.get_context("spawn")
        self._all_ready = self._context.RawValue("b", 0)
        self._processes = {}  # connection -> (Worker, process)
        self._ready = set()
        self._have_started = False
        self._due = dict.fromkeys(range(1, count + 1), 0.0)  # when to start
        self._failures = dict.fromkeys(self._due, 0)  # since it was ready

    def run(self, signals):
        """Starts them, and again if they die, until a signal comes."""
        while True:
            now = time.monotonic()
            for number in [n for n, due in self._due.items() if due <= now]:
                del self._due[number]
                self._start(number)
            pause = min(self._due.values()) - now if self._due else None
            found = connection.wait([signals, *self._processes], pause)
            if signals in found:
                return
            for pipe in found[:1]:
                self._receive(pipe)

    def stop(self):
        """Stops them in order, and kills those that are late."""
        end = time.monotonic() + _ENDING
        left = [process for _, process in self._processes.values()]
        while left := [process for process in left if process.is_alive()]:
            for process in left:
                # More than once: there is a moment in which it is ignored.
                late = time.monotonic() > end
                process.kill() if late else process.terminate()
            connection.wait([process.sentinel for process in left], 1.0)

    def _start(self, number):
        ours, theirs = self._context.Pipe()
        worker = Worker(
            *(number, self._have_started, self._all_ready),
            *(theirs, self._folder),
        )
        process = self._context.Process(
            target=_run, args=(self._work, worker), daemon=True
        )
        process.start()
        theirs.close()
        self._processes[ours] = worker, process

    def _receive(self, pipe):
        """Takes a worker's message, or the end of its process."""
        worker, process = self._processes[pipe]
        try:
            error = pipe.recv()
        except (EOFError, ConnectionError):
            process.join(_LEAVING)
            process.kill()  # if it has not left, it does not answer either
            process.join()
            self._forget(pipe, worker, _end_of(process))
            return
        if error is None:
            self._ready.add(pipe)
            self._tell_ready(worker)
        elif self._have_started:
            _print(f"{worker.name}: {error}")
        else:
            raise error

    def _tell_ready(self, worker):
        self._failures[worker.number] = 0
        are_all = len(self._ready) == self._count
        self._all_ready.value = are_all
        if self._have_started:
            _print(f"{worker.name} is ready.")
        elif are_all:
            self._have_started = True
            _print(f"{self._count} workers are ready.")

    def _forget(self, pipe, worker, how):
        """Forgets a worker that has died, and restarts it after a pause."""
        self._all_ready.value = False
        self._ready.discard(pipe)
        del self._processes[pipe]
        pipe.close()
        if not self._have_started:
            raise UserError(
                f"{worker.name} {how} before it was ready. Each worker loads "
                "the models: is memory full?"
            )
        _print(f"{worker.name} {how}, and is started again.")
        worker.file.unlink(missing_ok=True)
        pauses = min(2 ** self._failures[worker.number], _MOST_PAUSES)
        self._failures[worker.number] += 1
        self._due[worker.number] = time.monotonic() + pauses * _PAUSE


def _run(work, worker):
    """A worker, in its process."""
    for number in (signal.SIGINT, signal.SIGHUP):  # until it answers
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_after_parent, daemon=True).start()
    try:
        work(worker)
    except (UserError, OSError, MemoryError) as error:
        worker.main.send(error)
        sys.exit(1)


def _end_after_parent():
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _signals():
    """A socket that receives the numbers of signals instead of handlers."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs:
        handlers = {
            number: signal.signal(number, lambda *_: None)
            for number in stop_signals()
        }
        previous = signal.set_wakeup_fd(theirs.fileno())
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(previous)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _end_of(process):
    """How a process has ended, in words."""
    code = process.exitcode
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"has ended with exit code {code}"


def _print(line):
    with contextlib.suppress(OSError):
        print(escaped_line(line), file=sys.stderr, flush=True)
