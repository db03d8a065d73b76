"""Trainings in processes of their own."""

import contextlib
import subprocess
import sys
import time

from kseq.files.recorded_metrics import recorded_metrics
from kseq.process import stop_in_order
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_POLL = 0.1  # seconds
_ENDING = 60.0  # seconds in which a stopped training saves and ends


@contextlib.contextmanager
def training_process(arguments, metrics, log, **options):
    """Trains in a process of its own, at most as long as the context lasts.

    Args:
        arguments: list of str, of Python.
        metrics: `pathlib.Path` of the `metrics.jsonl` of its run.
        log: `pathlib.Path` of the file that gets what it prints.
        **options: of `subprocess.Popen`.

    Yields:
        `TrainingProcess`.
    """
    with (
        stop_in_order(),
        open(log, "wb") as output,
        subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            **options,
        ) as process,
    ):
        try:
            yield TrainingProcess(process, metrics, log)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING)
            process.kill()
            process.wait()


class TrainingProcess:
    """A training that another process runs; see `training_process`.

    Attributes:
        metrics: `pathlib.Path` of its `metrics.jsonl`.
    """

    def __init__(self, process, metrics, log):
        self.metrics = metrics
        self._process = process
        self._log = log

    def wait_for(self, has_come=None):
        """Waits for rows of metrics, or for the end of the process.

        Args:
            has_come: function of the rows, whether the wait is over; None:
                until the process ends.

        Returns:
            The rows, or None if the process ends and they do not come.
        """
        while True:
            has_ended = self._process.poll() is not None
            rows = list(recorded_metrics(self.metrics))
            if has_ended if has_come is None else has_come(rows):
                return rows
            if has_ended:
                return None
            time.sleep(_POLL)

    @property
    def code(self):
        """The exit code of the process that has ended."""
        return self._process.returncode

    def last_line(self):
        """What it printed last, for a message."""
        lines = self._log.read_text("utf-8", "replace").split("\n")
        last = [line for line in lines if line.strip()][-1:]
        return escaped_line(" ".join(last))[:500]


def failure(training, name="the short training"):
    """The error of a `TrainingProcess` that has failed, and its exit code."""
    error = UserError(
        f"{name} has ended with exit code {training.code}: "
        f"{training.last_line()}"
    )
    if training.code > 0:  # not a signal
        error.exit_code = training.code
    return error
