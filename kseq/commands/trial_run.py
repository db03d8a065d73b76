"""A training run that leaves nothing behind."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from kseq.files.training_process import training_process


@contextlib.contextmanager
def trial_run(words):
    """Trains in a process of its own, as long as the context lasts.

    Args:
        words: the command without the program, such as `["train",
            "translate_lstm"]`. `--run` is added, and trackers are off.

    Yields:
        `TrainingProcess`.
    """
    with tempfile.TemporaryDirectory(prefix="kseq-trial-") as folder:
        # Its exports have the name of the run: one that nobody has.
        path = Path(folder, Path(folder).name)
        exports = Path("saved_models", path.name)
        has_exports = exports.parent.exists()
        words = [*without(words, "--track"), "--run", str(path)]
        try:
            with training_process(
                ["-m", "kseq", *words],
                path / "metrics.jsonl",
                Path(folder, "log"),
            ) as trial:
                yield trial
        finally:
            shutil.rmtree(exports, ignore_errors=True)
            if not has_exports:
                with contextlib.suppress(OSError):
                    exports.parent.rmdir()


def without(words, option):
    """The words without an option and its values."""
    kept, is_value = [], False
    for word in words:
        if word.startswith("--"):
            is_value = word.partition("=")[0].replace("_", "-") == option
        if not is_value:
            kept.append(word)
    return kept
