"""Processes that share a port, with work that loads no library."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from kseq.commands import serve_workers
from kseq.commands.serve_workers import run_workers
from kseq.user_error import UserError
from tests.waiting import wait_for


def wait_for_the_end():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    while True:
        time.sleep(0.01)


def answer(worker):
    """Is ready at once, and leaves its process id."""
    worker.file.write_text(f"{os.getpid()} {worker.is_first}")
    worker.tell_ready()
    wait_for_the_end()


def answer_late(worker):
    """The second one fails once more after it was killed."""
    if worker.is_restarted and not (worker.folder / "failed").exists():
        (worker.folder / "failed").touch()
        raise UserError("the disk\nis full")
    answer(worker)


def stop_main(worker, number=signal.SIGTERM):
    worker.tell_ready()
    while not worker.all_ready.value:
        time.sleep(0.01)
    os.kill(os.getppid(), number)
    wait_for_the_end()


def interrupt_main(worker):
    stop_main(worker, signal.SIGINT)


def hang_up(worker):
    """All processes of a terminal that is closed get it."""
    os.kill(os.getpid(), signal.SIGHUP)
    stop_main(worker, signal.SIGHUP)


def never_end(worker):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    worker.tell_ready()
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(100)


def refuse(worker):
    raise UserError("the model is broken")


def die(worker):
    os.kill(os.getpid(), signal.SIGKILL)


def has_ended(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(serve_workers, "_PAUSE", 0)


def test_who_dies_is_replaced(tmp_path, capfd):
    """The other is not: one is killed, and its first substitute fails."""
    seen = {}

    def kill_one():
        files = [tmp_path / f"{number}.worker" for number in (1, 2)]
        try:
            wait_for(
                lambda: "2 workers are ready" in capfd.readouterr().err, 30
            )
            seen["before"] = [file.read_text().split() for file in files]
            os.kill(int(seen["before"][0][0]), signal.SIGKILL)
            seen["lines"] = ""

            def is_ready():
                seen["lines"] += capfd.readouterr().err
                return "worker 1 is ready" in seen["lines"]

            wait_for(is_ready, 30)
            seen["after"] = [file.read_text().split() for file in files]
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=kill_one)
    thread.start()
    with socket.socket() as listening:
        run_workers(2, answer_late, tmp_path, [listening])
        assert listening.fileno() == -1
    thread.join()
    (one, first), other = seen["before"]
    assert (first, other[1]) == ("True", "False")
    assert seen["after"][0][0] != one
    assert seen["after"] == [[seen["after"][0][0], "False"], other]
    assert seen["lines"].splitlines() == [
        "worker 1 was ended by signal 9 (Killed), and is started again.",
        "worker 1: the disk\\nis full",
        "worker 1 has ended with exit code 1, and is started again.",
        "worker 1 is ready.",
    ]
    assert all(has_ended(int(number)) for number, _ in seen["after"])


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (refuse, UserError, "the model is broken"),
        (
            die,
            UserError,
            r"worker 1 was ended by signal 9 \(Killed\) before it was",
        ),
        (interrupt_main, KeyboardInterrupt, None),
    ],
)
def test_how_it_ends(tmp_path, capfd, work, error, message):
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(error, match=message):
        run_workers(1, work, tmp_path, [])
    assert "Traceback" not in capfd.readouterr().err
    assert handlers == [
        signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)
    ]


def test_a_terminal_that_is_closed(tmp_path, capfd, sighup):
    run_workers(1, hang_up, tmp_path, [])
    assert capfd.readouterr().err == "1 workers are ready.\n"


def test_who_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(serve_workers, "_ENDING", 0.1)
    start = time.monotonic()
    run_workers(1, never_end, tmp_path, [])
    assert time.monotonic() - start < 30


def test_workers_end_with_the_main_process(tmp_path):
    code = (
        "from pathlib import Path; from kseq.commands.serve_workers import "
        "run_workers; from tests.commands import test_serve_workers as t; "
        f"run_workers(1, t.answer, Path({str(tmp_path)!r}), [])"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as main:
        file = tmp_path / "1.worker"
        wait_for(lambda: file.exists() and file.read_text(), 30)
        number = int(file.read_text().split()[0])
        main.kill()
    wait_for(lambda: has_ended(number), 30)
