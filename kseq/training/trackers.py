"""Experiment trackers that get the metrics of a run beside TensorBoard."""

import importlib
import json
import logging

from kseq.files.atomic_write import atomic_write
from kseq.files.json_files import read_json, to_json
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_IDS = "trackers.json"  # by name: a run that resumes continues there
_PROJECT = "kseq"
_log = logging.getLogger(__name__)


def start_trackers(run):
    """Starts the trackers that the config of a run names with `track`.

    A run that resumes continues what it has begun there. Where they send it
    is decided by their own settings, such as WANDB_MODE or
    MLFLOW_TRACKING_URI.

    Args:
        run: `RunDirectory`; without a config it has none.

    Returns:
        `Trackers`.

    Raises:
        UserError: if one cannot start.
    """
    config = read_json(run.config) if run.config.is_file() else {}
    path = run.path / _IDS
    ids = read_json(path) if path.is_file() else {}
    started = []
    for name in config.get("track", ()):
        start = {"wandb": _WandB, "mlflow": _MLflow}[name]
        try:
            tracker = start(run, config, ids.get(name))
        except Exception as error:  # of any kind, by their own code
            raise UserError(
                f"--track {name}: it cannot start: {_line(error)}"
            ) from error
        ids[name] = tracker.id
        started.append(tracker)
    if started:
        atomic_write(path, to_json(ids))
    return Trackers(started)


class Trackers:
    """Reports to all trackers; what they cannot take does not end training."""

    def __init__(self, trackers):
        self._trackers = trackers

    def log(self, step, values):
        """Reports numbers, a dict, of a step."""
        self._each("log", step, values)

    def end(self):
        """Completes what was sent."""
        self._each("end")

    def _each(self, action, *arguments):
        for tracker in list(self._trackers):
            try:
                getattr(tracker, action)(*arguments)
            except Exception as error:  # of any kind, by their own code
                self._trackers.remove(tracker)
                _log.warning(
                    f"{tracker.name} gets no more data of this run: "
                    f"{_line(error)}"
                )


class _WandB:
    name = "wandb"

    def __init__(self, run, config, known):
        wandb = importlib.import_module(self.name)
        self._run = wandb.init(
            project=_PROJECT,
            name=_name(run),
            dir=str(run.path),
            config=config,
            id=known,
            resume="allow",
        )
        self.id = self._run.id

    def log(self, step, values):
        self._run.log(values, step=step)

    def end(self):
        self._run.finish()


class _MLflow:
    name = "mlflow"

    def __init__(self, run, config, known):
        self._mlflow = importlib.import_module(self.name)
        if known is None:
            self._mlflow.set_experiment(_PROJECT)
        started = self._mlflow.start_run(
            run_id=known, run_name=None if known else _name(run)
        )
        self.id = started.info.run_id
        if known is None:
            texts = {name: json.dumps(config[name]) for name in config}
            self._mlflow.log_params(texts)

    def log(self, step, values):
        self._mlflow.log_metrics(values, step=step)

    def end(self):
        self._mlflow.end_run()


def _name(run):
    return escaped_line(run.path.resolve().name)


def _line(error):
    return escaped_line(f"{error}".strip().partition("\n")[0])[:300]
