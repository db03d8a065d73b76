"""Work in several processes, of which each may die."""

import contextlib
import multiprocessing
import os
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import connection
from typing import Any

from kseq.data.files.beam_jobs import run_beam_jobs
from kseq.process import quiet_stderr
from kseq.terminal import progress
from kseq.user_error import UserError

# Of text, for which it is worth to start another. Reading and tokenizing pairs
# take 0.16 s of a core a MB: 0.7 s for the 29,000 pairs of Multi30k, 5 s for
# 200,000. Each process first imports TensorFlow, 10 s of a core, for reading
# and again for tokenizing: smaller files are finished before that.
_BYTES_OF_PROCESS = 2**26
# TensorFlow, where a worker needs it, has one core and no GPU.
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}


def run_jobs(
    function: Callable, jobs: Sequence, processes: int
) -> Iterator[int]:
    """Calls a function with each job, and yields its number when it is done.

    One process is this one. Others end with the iterator, however it ends;
    where this process is killed, each ends after its job.

    Args:
        function: of a module, whose argument can be pickled; its result is
            ignored.
        jobs: arguments of the function.
        processes: number of processes.

    Raises:
        UserError: a process has died. It is no DataError, after which nothing
            is kept: the data are right.
        Exception: that of the function.

    Example:
    >>> list(run_jobs(print, ["a", "b"], processes=1))
    a
    b
    [0, 1]
    """
    processes = min(processes, len(jobs))
    if processes <= 1:
        for number, job in enumerate(jobs):
            function(job)
            yield number
        return
    rest = iter(enumerate(jobs))
    with _workers(processes) as workers:
        for worker, numbered in zip(workers, rest, strict=False):
            worker.send((function, *numbered))
        busy = set(workers)
        while busy:
            for worker in connection.wait(busy):
                number, error = _received(worker)
                if error is not None:
                    raise error
                numbered = next(rest, None)
                if numbered is None:
                    busy.remove(worker)
                else:
                    worker.send((function, *numbered))
                yield number


def run_part_jobs(
    description: str,
    function: Callable,
    jobs: Iterable[tuple[Any, int]],
    end: str,
    processes: int | None = None,
    beam: Sequence[str] | None = None,
):
    """Calls a function with each job that is not done, and shows how far it is.

    Args:
        description: of the work, for the progress.
        function: see `run_jobs`.
        jobs: those of `run_jobs`, each with its bytes. The paths of the files
            of one begin with its `part`.
        end: of the path of the file that the function writes last.
        processes: number of processes. By default it depends on the bytes, and
            is at most the number of cores.
        beam: options of a pipeline that calls the function, see
            `run_beam_jobs`, in place of processes; or None.
    """
    rest = [
        (job, size)
        for job, size in jobs
        if not os.path.isfile(f"{job.part}{end}")
    ]
    if not rest:
        return
    jobs, sizes = zip(*rest, strict=True)
    with progress(description, sum(sizes) // 2**20, "MB") as advance:
        done = shown = 0
        if beam is None:
            worth = min(os.cpu_count() or 1, sum(sizes) // _BYTES_OF_PROCESS)
            finished = run_jobs(function, jobs, processes or worth)
        else:
            finished = run_beam_jobs(function, jobs, beam)
        for number in finished:
            done += sizes[number]
            advance(done // 2**20 - shown)
            shown = done // 2**20


@contextlib.contextmanager
def _workers(count):
    context = multiprocessing.get_context("spawn")
    processes, workers = [], []
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs,), daemon=True)
            with _without_main():
                process.start()
            theirs.close()
            processes.append(process)
            workers.append(ours)
        yield workers
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


@contextlib.contextmanager
def _without_main():
    """Keeps a process from importing the program, which may be a recipe."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _received(worker):
    try:
        return worker.recv()
    except (EOFError, ConnectionError):
        raise UserError(
            "A process that was preparing data has died, perhaps because "
            "memory is full. Start the command again with fewer --processes: "
            "what is finished is kept."
        ) from None


def _work(main):
    """Answers jobs until the other end is closed."""
    for number in (signal.SIGINT, signal.SIGHUP):  # the main process ends it
        signal.signal(number, signal.SIG_IGN)
    os.environ.update(_ENVIRONMENT)
    # The first job imports what it needs, such as TensorFlow.
    quiet = quiet_stderr
    while True:
        try:
            with quiet():
                function, number, job = main.recv()
        except EOFError:
            return
        quiet = contextlib.nullcontext
        error = None
        try:
            function(job)
        except Exception as raised:
            error = raised
        with contextlib.suppress(BrokenPipeError):
            main.send((number, error))
