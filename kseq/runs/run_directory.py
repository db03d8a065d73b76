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
    | `source.model`, `target.model` | the tokenizers; `target` of text alone |
    | `documents.json` | of a classifier: labels, and how texts are cut |
    | `pretraining/` | checkpoints and metrics of what came before, if it did |
    | `checkpoints/` | `last`, `best` and, when asked for, `average` |
    | `metrics.jsonl` | one JSON object a line, written in training |
    | `tensorboard/`, `samples/` | what training shows |

    Files are written whole or not at all, so that a run can be killed at any
    moment. The same config on the same directory goes on where it stopped.
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
        self.source_tokenizer = self.path / "source.model"
        self.target_tokenizer = self.path / "target.model"
        self.documents = self.path / "documents.json"
        self.pretraining = self.path / "pretraining"
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.samples = self.path / "samples"
        self.lock = self.path / "lock"
        self.batch_sizes = ""

    def start(self, config, may_change=(), overwrite=False):
        """Makes the directory, or goes on in it.

        What the config says of its batches is kept in `batch_sizes`: a place
        in the data means nothing in batches of other sizes.

        Args:
            config: the recipe's dataclass. Its fields `run` and `overwrite`,
                if any, are left out: they are of the command.
            may_change: names of the fields that may differ from those of the
                run that is there: number of steps, output options.
            overwrite: whether to delete that run and start anew.

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

    def exists(self):
        """Whether the directory holds a run."""
        return self.config.is_file() and self.environment.is_file()

    def save_model(self, model):
        """Writes the model's config, or checks that it is the one there.

        Args:
            model: `keras.Model`; if compiled, the optimizer counts as well.

        Raises:
            RunError: where the run has been started with another model.
        """
        description = json.loads(
            _to_json(keras.saving.serialize_keras_object(model))
        )
        self._save_or_compare(self.model, description)

    def save_tokenizers(self, source, target):
        """Writes the tokenizers, or checks that they are the ones there.

        Args:
            source: `Tokenizer`, or any object with its bytes in `model`.
            target: the same; may be the same object.

        Raises:
            RunError: where the run has been started with others.
        """
        self._save_tokenizer(self.source_tokenizer, source)
        self._save_tokenizer(self.target_tokenizer, target)

    def save_document_tokenizer(self, tokenizer, labels):
        """Writes how texts become ids, and what their labels are.

        Args:
            tokenizer: `DocumentTokenizer`.
            labels: all labels, in the order of the classes.

        Raises:
            RunError: where the run has been started with others.
        """
        self._save_tokenizer(self.source_tokenizer, tokenizer.tokenizer)
        description = {"labels": list(labels), **tokenizer.get_config()}
        self._save_or_compare(self.documents, description)

    def _save_tokenizer(self, path, tokenizer):
        if not is_chief():
            return
        if not path.is_file():
            write_whole(path, tokenizer.model)
        elif path.read_bytes() != tokenizer.model:
            raise RunError(
                f"{path} is not the tokenizer that this training would "
                "use: its data have changed. Take another directory, or "
                "overwrite this one."
            )

    def _save_or_compare(self, path, description):
        if not is_chief():
            return
        if path.is_file():
            self._refuse_other(path, description)
        else:
            write_whole(path, _to_json(description))

    def _start(self, new, may_change, overwrite):
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.exists():
            self._refuse_foreign_files()
        if holder := lock(self.lock):
            raise RunError(
                f"{self.path} is being trained by {holder}. "
                "Wait for it, or take another directory."
            )
        if self.exists() and overwrite:
            self._delete()

        if self.exists():
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
        changes = _changes(read_json(path), new)
        allowed = [
            line for key, line in changes if key.split(".")[0] in may_change
        ]
        refused = [line for _, line in changes if line not in allowed]
        if refused:
            listing = "\n".join(f"  {line}" for line in refused)
            raise RunError(
                f"{self.path} holds a run with another {path.stem}:\n"
                f"{listing}\n"
                "Take another directory, or overwrite this one."
            )
        for line in allowed:
            print(f"{self.path} goes on with {line}", file=sys.stderr)

    def _delete(self):
        """Deletes the run; files that are not of it stay."""
        directories = self.pretraining, self.checkpoints
        directories += self.tensorboard, self.samples
        for path in directories:
            if path.exists():
                shutil.rmtree(path)
        files = self.model, self.source_tokenizer, self.target_tokenizer
        files += self.documents, self.metrics, self.config, self.environment
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


def _changes(old, new):
    """(key, "key: old -> new") for each leaf that differs."""
    old, new = _leaves(old), _leaves(new)
    return [
        (key, f"{key}: {old.get(key, 'none')} -> {new.get(key, 'none')}")
        for key in sorted(old.keys() | new.keys())
        if key not in old or key not in new or old[key] != new[key]
        # Keras numbers the optimizers of a process: adam, adam_1.
        if not key.endswith("optimizer.config.name")
    ]


def _leaves(tree, prefix=""):
    """{"a.b": value} of nested dicts and lists."""
    leaves = {}
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        if value and isinstance(value, dict | list):
            leaves |= _leaves(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves
