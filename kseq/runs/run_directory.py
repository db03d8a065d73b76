"""The directory of a run: all that one training knows, in files."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from pathlib import Path

import keras

import kseq
from kseq.devices import is_chief
from kseq.model_path import is_run
from kseq.runs import version_0_1
from kseq.runs.changes import changes
from kseq.runs.run_lock import lock
from kseq.user_error import UserError
from kseq.whole_files import part_of, write_whole

_PACKAGES = (
    "tensorflow",
    "tensorflow-text",
    "keras",
    "numpy",
    "sentencepiece",
    "sacrebleu",
)


class RunError(UserError):
    """A run directory that cannot be used as it was asked to be."""


class DiskError(RunError):
    """A file that could not be written."""

    exit_code = 4


class RunDirectory:
    """The files of one run, `runs/<name>/`.

    | name | what it holds |
    |---|---|
    | `config.json` | every number of the recipe |
    | `environment.json` | versions, machine, seed |
    | `model.json` | Keras's config of the model and its optimizer |
    | `task.json` | what is done with the model: preprocessor, search, labels |
    | `source.model`, `target.model` | the tokenizers that there are |
    | `pretraining/` | checkpoints and metrics of what came before, if it did |
    | `checkpoints/` | `last`, `best` and, when asked for, `average` |
    | `metrics.jsonl` | one JSON object a line, written in training |
    | `tensorboard/`, `samples/` | what training shows |
    | `README.md` | what was trained, with which scores, and how to use it |

    Files are written whole or not at all, so that a run can be killed at any
    moment. The same config on the same directory resumes where it stopped.
    One process at a time may: it holds the file `lock`. In a cluster only the
    chief writes; the others read its checkpoints, on a disk that all share.

    Args:
        path: the directory; nothing is made or read yet.

    Example:
        >>> run = RunDirectory("runs/dates")
        >>> run.metrics.as_posix()
        'runs/dates/metrics.jsonl'
    """

    def __init__(self, path):
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.environment = self.path / "environment.json"
        self.model = self.path / "model.json"
        self.task = self.path / "task.json"
        self._documents = self.path / "documents.json"  # of version 0.1
        self.pretraining = self.path / "pretraining"
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.samples = self.path / "samples"
        self.readme = self.path / "README.md"
        self.lock = self.path / "lock"
        self.batch_sizes = ""

    def start(self, config, may_change=(), overwrite=False):
        """Makes the directory, or resumes in it.

        What the config says of its batches is kept in `batch_sizes`: a place
        in the data means nothing in batches of other sizes.

        Args:
            config: the recipe's dataclass. Its fields `run` and `overwrite`,
                if any, are left out: they are of the command.
            may_change: names of the fields that may differ from those of the
                run that is there: number of steps, output options.
            overwrite: whether to delete that run and start a new one.

        Raises:
            RunError: where the directory holds something else than a run, or
                a run with other numbers, or one that another process trains.
        """
        # Through JSON, for what is read back is compared with it.
        new = json.loads(_to_json(dataclasses.asdict(config)))
        self.batch_sizes = ", ".join(
            f"{name}={new[name]}" for name in batch_fields(config)
        )
        if not is_chief():
            return
        for name in ("run", "overwrite"):
            new.pop(name, None)
        try:
            self._start(new, may_change, overwrite)
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be used: {error.strerror}."
            ) from error

    def save(self, served):
        """Writes what is trained, or checks that it is what is there.

        Args:
            served: `kseq.serving.Generator` or `Classifier`: its model, its
                tokenizers and what it does with them are written. If the
                model is compiled, its optimizer counts as well.

        Raises:
            RunError: where the run has been started with something else.
        """
        if not is_chief():
            return
        for name, tokenizer in served.tokenizers.items():
            self._save_tokenizer(self.tokenizer(name), tokenizer)
        self._save_or_compare(
            self.task, json.loads(_to_json(served.get_config()))
        )
        self.save_model(served.model)

    def save_model(self, model):
        """Writes the model's config, or checks that it is the one there.

        Args:
            model: `keras.Model`; if compiled, the optimizer counts as well.

        Raises:
            RunError: where the run has been started with another model.
        """
        description = keras.saving.serialize_keras_object(model)
        if is_chief():
            self._save_or_compare(self.model, json.loads(_to_json(description)))

    def tokenizer(self, name):
        """The path of the tokenizer "source" or "target"."""
        return self.path / f"{name}.model"

    def read_task(self):
        """What `save` wrote of the task, also for a run of version 0.1."""
        if self.task.is_file():
            return read_json(self.task)
        has_documents = self._documents.is_file()
        return version_0_1.task(
            read_json(self.config),
            read_json(self._documents) if has_documents else None,
        )

    def read_model(self):
        """Keras's config of the model, also for a run of version 0.1."""
        return version_0_1.model_description(read_json(self.model))

    def _save_tokenizer(self, path, tokenizer):
        if not path.is_file():
            write_whole(path, tokenizer.model)
        elif path.read_bytes() != tokenizer.model:
            raise RunError(
                f"{path} is not the tokenizer that this training would "
                "use: its data have changed. Take another directory, or "
                "overwrite this one."
            )

    def _save_or_compare(self, path, description):
        if path.is_file():
            self._refuse_other(path, description)
        else:
            write_whole(path, _to_json(description))

    def _start(self, new, may_change, overwrite):
        self.path.mkdir(parents=True, exist_ok=True)
        if not is_run(self.path):
            self._refuse_foreign_files()
        if holder := lock(self.lock):
            raise RunError(
                f"{self.path} is being trained by {holder}. "
                "Wait for it, or take another directory."
            )
        if is_run(self.path) and overwrite:
            self._delete()

        if is_run(self.path):
            self._refuse_other(self.config, new, may_change)
        else:
            environment = _environment(seed=new.get("seed"))
            write_whole(self.environment, _to_json(environment))
        # Last, for a directory with both files is a run.
        write_whole(self.config, _to_json(new))

    def _refuse_foreign_files(self):
        # Of this start, or of one that was killed.
        ours = {self.environment.name, self.lock.name}
        ours |= {part_of(self.environment).name, part_of(self.config).name}
        found = {path.name for path in self.path.glob("*")} - ours
        if found:
            raise RunError(
                f"{self.path} is not a run: it holds {min(found)}. "
                "Take another directory."
            )

    def _refuse_other(self, path, new, may_change=()):
        """Compares with what `path` holds; says what was allowed to change."""
        version = read_json(self.environment).get("kseq")
        found = changes(
            version_0_1.renamed(read_json(path)),
            new,
            all_keys=version == kseq.__version__,
        )
        allowed = [
            line for key, line in found if key.split(".")[0] in may_change
        ]
        refused = [line for _, line in found if line not in allowed]
        if refused:
            listing = "\n".join(f"  {line}" for line in refused)
            raise RunError(
                f"{self.path} holds a run with another {path.stem}:\n"
                f"{listing}\n"
                "Take another directory, or overwrite this one."
            )
        for line in allowed:
            print(f"{self.path} resumes with {line}", file=sys.stderr)

    def _delete(self):
        """Deletes the run; files that are not of it stay."""
        directories = self.pretraining, self.checkpoints
        directories += self.tensorboard, self.samples
        for path in directories:
            if path.exists():
                shutil.rmtree(path)
        files = (
            self.model,
            self.task,
            self.metrics,
            self.readme,
            self.path / "documents.json",
        )
        files += self.tokenizer("source"), self.tokenizer("target")
        files += self.config, self.environment
        for path in files:
            path.unlink(missing_ok=True)


def batch_fields(config):
    """The names of a recipe's fields that say how large a batch is."""
    names = (field.name for field in dataclasses.fields(config))
    return [name for name in names if name.startswith("batch_")]


def read_json(path):
    """What a JSON file of a run holds; RunError where it is broken."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise RunError(f"{path} is broken: {error}") from error


def _to_json(value):
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"


def _environment(seed):
    versions = {
        package: importlib.metadata.version(package) for package in _PACKAGES
    }
    return {
        "kseq": kseq.__version__,
        "python": platform.python_version(),
        **versions,
        "machine": platform.platform(),
        "processor": platform.machine(),
        "processors": os.cpu_count(),
        "seed": seed,
    }
