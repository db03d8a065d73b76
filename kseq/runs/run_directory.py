"""The directory of a run."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path

import keras

import kseq
from kseq.data.files.prepared_folder import (
    PreparedFolder,
    is_prepared,
    prepared_folder,
)
from kseq.devices import (
    device_name,
    dtype_policy,
    from_chief,
    is_chief,
    on_all_machines,
)
from kseq.files import version_0_1
from kseq.files.atomic_write import atomic_write, partial_path
from kseq.files.json_files import as_read, read_json, to_json
from kseq.files.model_path import is_run
from kseq.process import started_command
from kseq.runs.atomic_replace import replace_atomically
from kseq.runs.changes import changes
from kseq.runs.data_files import changed_fields, data_files, moved_fields
from kseq.runs.exports import check_exports
from kseq.runs.free_disk import check_free_disk
from kseq.runs.run_lock import lock_directory
from kseq.user_error import DiskError, RunError, check_integers

# Options of which every value computes the same update; versions 0.1 and 0.2
# wrote jit_compile false where "auto" is written now.
_SAME_UPDATE = ("accumulation_steps", "jit_compile")
# Options that a new run decides, and their values until it has: the dropout
# when the data are known, see `RunDirectory.decide`.
_UNDECIDED = {"dropout": None, "dtype": "auto"}
# Options of tokenizers, which a prepared folder has instead.
_OF_TOKENIZERS = ("vocab_size", "pieces", "tokens")
# Their versions are recorded.
_PACKAGES = (
    "tensorflow",
    "tensorflow-text",
    "keras",
    "numpy",
    "sentencepiece",
    "sacrebleu",
)


class RunDirectory:
    """The files of one run, `runs/<name>/`.

    | name | content |
    |---|---|
    | `config.json` | all options of the recipe |
    | `environment.json` | versions, machine, seed |
    | `model.json` | Keras's config of the model and its optimizer |
    | `data.json` | hashes of the data files, which may be moved |
    | `command.json` | the command that started it, for `kseq verify` |
    | `task.json` | how the model is used: preprocessor, search, labels |
    | `source.model`, `target.model` | the tokenizers |
    | `calibration.json` | the temperature of its probabilities, if any |
    | `vectors.txt` | how many pieces have vectors of a file, if any |
    | `answers.txt` | the answers of a retriever, one per line |
    | `prepared/` | the data of training, as `kseq prepare` writes them |
    | `pretraining/` | checkpoints and metrics of pretraining, if any |
    | `features.npz`, `network.npz` | of pictures, and their network |
    | `checkpoints/` | `last`, `best` and, on request, `top` and `average` |
    | `metrics.jsonl` | one JSON object per line, written in training |
    | `tensorboard/`, `samples/` | TensorBoard logs, and sample answers |
    | `README.md` | model card: what was trained, its scores, its use |
    | `learning_curve.png` | losses and scores over the steps |

    `start` checks and locks the directory, `save` writes to it: a command that
    fails in between leaves it unchanged, except for `prepared`, which a new run
    may have written before; otherwise `save` deletes that of the old run. Files
    are written atomically, so a run can be killed at any moment. The same
    config on the same directory resumes where it stopped. One process at a time
    may train: it holds the file `lock`.
    In a cluster only the chief writes; the others read its checkpoints, on a
    disk that all share.

    Args:
        path: the directory; nothing is created or read yet.

    Raises:
        RunError: if the path is empty or contains NUL.

    Example:
        >>> run = RunDirectory("runs/dates")
        >>> run.metrics.as_posix()
        'runs/dates/metrics.jsonl'
    """

    def __init__(self, path):
        if not str(path) or "\0" in str(path):
            raise RunError(
                f"Expected the path of a run directory. Received: {str(path)!r}"
            )
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.environment = self.path / "environment.json"
        self.model = self.path / "model.json"
        self.data = self.path / "data.json"
        self.command = self.path / "command.json"
        self.task = self.path / "task.json"
        self._documents = self.path / "documents.json"  # of version 0.1
        self.calibration = self.path / "calibration.json"
        self.vectors = self.path / "vectors.txt"
        self.answers = self.path / "answers.txt"
        self.prepared = self.path / "prepared"
        self.pretraining = self.path / "pretraining"
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.samples = self.path / "samples"
        self.readme = self.path / "README.md"
        self.learning_curve = self.path / "learning_curve.png"
        self.lock = self.path / "lock"
        self.has_prepared = False  # in this start, the data in `prepared`
        self._is_saved = True
        self._config = None  # of `start`, for `save`
        self._overwrites = False

    @property
    def exports(self):
        """The folder of its exports, `saved_models/<name>`."""
        name = self.path.resolve().name
        if not name:
            raise RunError(f"{self.path} has no name for its exports.")
        return Path("saved_models") / name

    @property
    def kept(self):
        """The path of a run that resumes, after `start`; else None."""
        return self.path if self._is_saved and not self._overwrites else None

    def start(self, config, may_change=(), overwrite=False):
        """Locks the directory, to start a new run or to resume one.

        Nothing of a run is written or deleted before `save`. If the process
        ends before `save`, directories that were created here are removed.

        A config whose `dtype` is "auto" gets that of the run that resumes; in
        a new run that of the devices, see `kseq.devices.dtype_policy`. A
        `dropout` of None becomes that of the run that resumes. Options of
        tokenizers become those of a prepared folder that is `train`.

        Args:
            config: the recipe's dataclass. Its fields `run` and `overwrite`,
                if any, are left out: they belong to the command.
            may_change: names of the fields that may differ from those of an
                existing run, such as the number of steps. `accumulation_steps`
                always may.
            overwrite: whether `save` deletes that run and starts a new one.

        Returns:
            The config of the run.

        Raises:
            RunError: if the directory is not a run, has a different config,
                is being trained by another process, or shares its exports
                with another run.
        """
        if is_chief():
            self._lock(overwrite)
        config = self._decided(config)
        # Through JSON, because it is compared with what is read back.
        new = as_read(dataclasses.asdict(config))
        for name in ("run", "overwrite"):
            new.pop(name, None)
        self._config = new
        self._overwrites = overwrite
        if is_chief() and self._is_saved:
            moved = moved_fields(self.config, self.data, new)
            may_change = (*may_change, *_SAME_UPDATE, *moved)
            for line in self._refuse_other(self.config, new, may_change):
                print(f"{self.path} resumes with {line}", file=sys.stderr)
            self._refuse_changed_data(new, moved)
        return config

    def _refuse_changed_data(self, new, moved):
        """RunError if the data of the run are not those that it has read.

        Those that have moved were compared already.
        """
        is_given = prepared_folder(new.get("train")) is not None
        if is_prepared(self.prepared) and not is_given:
            return  # and compared with their files when they are opened
        same_paths = {name: new[name] for name in new if name not in moved}
        if names := changed_fields(self.data, same_paths):
            raise RunError(
                f"The data of {self.path} have changed since it was started: "
                f"{', '.join(f'{name}={new[name]}' for name in names)}. Use a "
                "different directory, or overwrite this one."
            )

    def _lock(self, overwrite):
        check_exports(self.exports, self.path)
        # Left by a start that was killed; the second one by version 0.1.
        leftovers = [self.prepared.name, self.environment.name]
        leftovers += [
            partial_path(f).name for f in (self.environment, self.config)
        ]
        lock_directory(self.path, self.lock, leftovers)
        self._is_saved = is_run(self.path) and not overwrite

    def _decided(self, config):
        """The config, with a dtype policy in place of "auto".

        A run that resumes keeps what it has decided, and one of an earlier
        version what was no option then.
        """
        kept = _of_prepared_tokenizers(config) if is_chief() else {}
        if is_chief() and self._is_saved:
            stored = version_0_1.renamed(read_json(self.config))
            version = read_json(self.environment).get("kseq")
            # An earlier version recorded defaults.
            kept = {name: stored.get(name, kept[name]) for name in kept}
            kept |= version_0_1.kept_options(version, stored, config)
            kept |= {
                name: stored[name]
                for name, undecided in _UNDECIDED.items()
                if name in stored and getattr(config, name, 0) == undecided
            }
        kept = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in from_chief(kept).items()
        }
        config = dataclasses.replace(config, **kept)
        if getattr(config, "dtype", None) == "auto":
            config = dataclasses.replace(config, dtype=dtype_policy())
        return config

    def decide(self, config, **values):
        """Gives options that are None values that follow from the data.

        Call it between `start` and `save`. A run that resumes has them.

        Args:
            config: that `start` has returned.
            **values: of some of its fields.

        Returns:
            The config of the run.
        """
        missing = {
            k: v for k, v in values.items() if getattr(config, k) is None
        }
        self._config |= missing
        return dataclasses.replace(config, **missing)

    def save(self, served, keep=5, more=None, keep_best=0):
        """Writes a new run, or checks that the existing one is the same.

        A run that is overwritten is deleted after the new one is complete.

        Args:
            served: `kseq.serving.Generator`, `Classifier` or `Retriever`: its
                model, its tokenizers, its `files` if it has any, and what it
                does with them are written. If the model is compiled, its
                optimizer counts as well.
            keep: int, how many checkpoints will be kept.
            more: dict, name -> bytes: other files, not of a run that resumes.
            keep_best: int, how many of the best weights will be kept as well.

        Raises:
            RunError: where the run has been started with something else.
            DiskError: where the disk has no room for the run.
        """
        files = {
            self.tokenizer(name): tokenizer.model
            for name, tokenizer in served.tokenizers.items()
        }
        files[self.task] = to_json(served.get_config())
        for name, content in getattr(served, "files", {}).items():
            files[self.path / name] = content
        if not self._is_saved:
            files |= {self.path / name: more[name] for name in more or ()}
        self._save(files, served.model, keep, keep_best)

    def save_model(self, model, keep=5):
        """Does what `save` does, for a model that serves nothing yet.

        Args:
            model: `keras.Model`; if compiled, the optimizer counts as well.
            keep: int, how many checkpoints will be kept.

        Raises:
            RunError: where the run has been started with a different model.
            DiskError: where the disk has no room for the run.
        """
        self._save({}, model, keep)

    def check_saved(self):
        """Raises ValueError if `save` has to be called before training."""
        if not self._is_saved:
            raise ValueError(
                f"{self.path} is started but not saved: call run.save first."
            )

    def tokenizer(self, name):
        """The path of the tokenizer "source" or "target"."""
        return self.path / f"{name}.model"

    def read_task(self):
        """What `save` wrote of the task, also for a run of version 0.1."""
        if self.task.is_file():
            return read_json(self.task)
        if self._documents.is_file():
            return version_0_1.task({}, read_json(self._documents))
        return version_0_1.task(read_json(self.config), None)

    def read_model(self):
        """Keras's config of the model, also for a run of version 0.1."""
        description = read_json(self.model)
        name, config = description.get("class_name"), description.get("config")
        if not isinstance(name, str) or not isinstance(config, dict):
            raise RunError(
                f"{self.model} is broken: it has no class_name and config."
            )
        return version_0_1.model_description(description)

    def _save(self, files, model, keep, keep_best=0):
        check_integers(keep=keep)
        check_integers(keep_best=keep_best, minimum=0)
        if self._config is None:
            raise ValueError("start must be called before save.")
        if is_chief():
            description = keras.saving.serialize_keras_object(model)
            files[self.model] = to_json(description)
            changed = self._check(files)
            check_free_disk(self.path, model, keep, keep_best)
            try:
                self._write(files, changed)
            except OSError as error:
                raise DiskError(
                    f"{self.path} cannot be written: {error.strerror}."
                ) from error
        if self._overwrites:
            # The others must not read the checkpoints of the old run.
            on_all_machines(0)
        self._is_saved, self._overwrites = True, False

    def _check(self, files):
        """Compares files with those of the run that resumes.

        Returns:
            The paths of those that differ in what may change.
        """
        changed = []
        if not self._is_saved:
            return changed
        for path in filter(Path.is_file, files):
            content = files[path]
            if path.suffix == ".json":
                compiled = [f"compile_config.{name}" for name in _SAME_UPDATE]
                if self._config.get("schedule") == "constant":
                    compiled.append("decay_steps")  # which change no rate
                if self._refuse_other(path, json.loads(content), compiled):
                    changed.append(path)
            elif path.read_bytes() != content:
                raise RunError(
                    f"{path} differs from what this training would use: the "
                    "data have changed. Use a different directory, or "
                    "overwrite this one."
                )
        return changed

    def _write(self, files, changed):
        if not self._is_saved:
            files[self.environment] = to_json(
                environment_of(self._config.get("seed"))
            )
            files[self.config] = to_json(self._config)
            files[self.command] = to_json({"command": started_command()})
            if found := data_files(self._config):
                files[self.data] = to_json(found)
            content = {path.name: text for path, text in files.items()}
            replace_atomically(self.path, content, self._names())
            return
        for path, content in files.items():
            # Version 0.1 had fewer.
            if path in changed or not path.is_file():
                atomic_write(path, content)
        if read_json(self.config) != self._config:
            atomic_write(self.config, to_json(self._config))

    def _names(self):
        """The names of the files of an old run, all except its lock."""
        kept = [self.path, self.lock]
        kept += [self.prepared] * self._needs_prepared
        paths = [
            *(each for each in vars(self).values() if isinstance(each, Path)),
            *(self.tokenizer("source"), self.tokenizer("target")),
            *(self.path / "features.npz", self.path / "network.npz"),
        ]
        paths = [path for path in paths if path not in kept]
        return [path.name for path in (*paths, *map(partial_path, paths))]

    @property
    def _needs_prepared(self):
        """Whether this start trains from `prepared`, its own or the user's."""
        train = self._config.get("train")
        paths = train if isinstance(train, list) else [train]
        return self.has_prepared or self.prepared.resolve() in [
            Path(path).resolve() for path in paths if isinstance(path, str)
        ]

    def _refuse_other(self, path, new, may_change=()):
        """Compares with the content of `path`; returns the changes allowed."""
        version = read_json(self.environment).get("kseq")
        found = changes(
            version_0_1.renamed(read_json(path)),
            new,
            all_keys=version == kseq.__version__,
        )
        allowed = [
            line
            for key, line in found
            if {key, key.split(".")[0], key.split(".")[-1]} & {*may_change}
        ]
        refused = [line for _, line in found if line not in allowed]
        if refused:
            listing = "\n".join(f"  {line}" for line in refused)
            raise RunError(
                f"{self.path} holds a run with a different {path.stem}:\n"
                f"{listing}\n"
                "Use a different directory, or overwrite this one."
            )
        return allowed


def _of_prepared_tokenizers(config):
    """The options of the tokenizers that were trained for prepared data."""
    folder = prepared_folder(getattr(config, "train", None))
    if folder is None:
        return {}
    with PreparedFolder(folder).opened() as record:
        options = record.get("plan", {}).get("options", {})
        options = {**options, **options.get("tokenizers", {})}
    return {
        name: options[name]
        for name in _OF_TOKENIZERS
        if name in options and hasattr(config, name)
    }


def batch_fields(config):
    """The names of a recipe's fields that are batch sizes."""
    names = (field.name for field in dataclasses.fields(config))
    return [name for name in names if name.startswith("batch_")]


def environment_of(seed):
    """Versions, machine and seed, a dict that `environment.json` holds.

    Args:
        seed: int, or None.
    """
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
        "device": device_name(),
        "seed": seed,
    }
