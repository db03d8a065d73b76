"""A training of which nothing stays."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kseq.files.recorded_metrics import recorded_metrics
from kseq.process import stop_in_order
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_POLL = 0.1  # seconds
_ENDING = 60.0  # seconds in which a stopped training saves and ends


@contextlib.contextmanager
def trial_run(words):
    """Trains in a process of its own, as long as the context lasts.

    Args:
        words: the command without the program, such as `["train",
            "translate_lstm"]`. `--run` is added, and no tracker is told.

    Yields:
        `TrialRun`.
    """
    with tempfile.TemporaryDirectory(prefix="kseq-trial-") as folder:
        # Its exports have the name of the run: one that nobody has.
        path = Path(folder, Path(folder).name)
        exports = Path("saved_models", path.name)
        has_exports = exports.parent.exists()
        log = Path(folder, "log")
        words = [*_untracked(words), "--run", str(path)]
        command = [sys.executable, "-m", "kseq", *words]
        with (
            stop_in_order(),
            open(log, "wb") as output,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            ) as process,
        ):
            try:
                yield TrialRun(process, path / "metrics.jsonl", log)
            finally:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDING)
                process.kill()
                process.wait()
                shutil.rmtree(exports, ignore_errors=True)
                if not has_exports:
                    with contextlib.suppress(OSError):
                        exports.parent.rmdir()


class TrialRun:
    """A training that another process runs."""

    def __init__(self, process, metrics, log):
        self._process = process
        self._metrics = metrics
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
            rows = list(recorded_metrics(self._metrics))
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


def failure(trial):
    """The error of a `TrialRun` that has ended with one, and its exit code."""
    error = UserError(
        f"the short training has ended with exit code {trial.code}: "
        f"{trial.last_line()}"
    )
    if trial.code > 0:  # not a signal
        error.exit_code = trial.code
    return error


def _untracked(words):
    """The words without `--track` and its values."""
    kept, is_value = [], False
    for word in words:
        if word.startswith("--"):
            is_value = word.partition("=")[0] == "--track"
        if not is_value:
            kept.append(word)
    return kept
