"""W&B and MLflow, beside TensorBoard."""

import json
import logging
import sys
import types

import pytest

from kseq.commands.trial_run import without
from kseq.files.optional_packages import check_trackers
from kseq.runs import RunDirectory
from kseq.training import MetricsLog
from kseq.training.trackers import start_trackers
from kseq.user_error import UserError
from tests.training.test_metrics_log import Model


class FakeWandB(types.ModuleType):
    """What wandb was called with."""

    def __init__(self):
        super().__init__("wandb")
        self.calls = []

    def init(self, **settings):
        self.calls.append(("init", settings))
        run = types.SimpleNamespace(id=settings["id"] or "w1")
        run.log = lambda values, step: self.calls.append((step, values))
        run.finish = lambda: self.calls.append("finish")
        return run


class FakeMLflow(types.ModuleType):
    def __init__(self):
        super().__init__("mlflow")
        self.calls = []

    def set_experiment(self, name):
        self.calls.append(("experiment", name))

    def start_run(self, run_id, run_name):
        self.calls.append(("start", run_id, run_name))
        info = types.SimpleNamespace(run_id=run_id or "m1")
        return types.SimpleNamespace(info=info)

    def log_params(self, values):
        self.calls.append(values)

    def log_metrics(self, values, step):
        self.calls.append((step, values))

    def end_run(self):
        self.calls.append("end")


@pytest.fixture
def fakes(monkeypatch):
    fakes = {"wandb": FakeWandB(), "mlflow": FakeMLflow()}
    for name, fake in fakes.items():
        monkeypatch.setitem(sys.modules, name, fake)
    return fakes


def tracked(folder, *names):
    run = RunDirectory(folder / "mine")
    run.path.mkdir(exist_ok=True)
    run.config.write_text(json.dumps({"track": names, "units": 8}))
    return run


def log_epochs(run, first, last):
    """What `fit` measures in epochs of two steps: one loss a step."""
    log = MetricsLog(run, total_steps=8, every=1)
    log.set_model(Model())
    log.model.optimizer.iterations.assign(2 * first)
    log.set_params({"steps": 2})
    log.on_train_begin()
    for epoch in range(first, last):
        for metric in log.model.metrics:  # as `fit` does
            metric.reset_state()
        log.on_epoch_begin(epoch)
        for step in range(2):
            log.model.train(1.0 + epoch, 4, 0.1, 0.5)
            log.on_train_batch_end(step, {})
        log.on_epoch_end(epoch, {"val_loss": 3.0 - epoch})
    log.on_train_end()


def test_a_training_is_reported(fakes, tmp_path):
    run = tracked(tmp_path, "wandb", "mlflow")
    log_epochs(run, 0, 2)
    start, *logged, end = fakes["wandb"].calls
    assert start[1]["name"] == "mine"
    assert start[1]["project"] == "kseq"
    assert start[1]["dir"] == str(run.path)
    assert start[1]["config"]["units"] == 8
    assert (start[1]["id"], end) == (None, "finish")
    experiment, begun, parameters, *sent, ended = fakes["mlflow"].calls
    for calls in (logged, sent):
        for name, losses in (
            ("train/loss", {1: 1.0, 2: 1.0, 3: 2.0, 4: 2.0}),
            ("validation/loss", {2: 3.0, 4: 2.0}),
        ):
            found = [
                (call[0], call[1][name]) for call in calls if name in call[1]
            ]
            assert dict(found) == losses
            assert len(found) == len(losses)
    assert experiment == ("experiment", "kseq")
    assert begun == ("start", None, "mine")
    assert parameters == {"track": '["wandb", "mlflow"]', "units": "8"}
    assert ended == "end"


def test_a_run_that_resumes_goes_on_in_the_same_place(fakes, tmp_path):
    run = tracked(tmp_path, "wandb", "mlflow")
    start_trackers(run).end()
    for fake in fakes.values():
        fake.calls.clear()
    start_trackers(run).log(5, {"train/loss": 1.0})
    [(_, settings), logged] = fakes["wandb"].calls
    assert (settings["id"], settings["resume"]) == ("w1", "allow")
    assert logged == (5, {"train/loss": 1.0})
    assert fakes["mlflow"].calls == [("start", "m1", None), logged]


def test_a_tracker_that_fails_does_not_end_training(fakes, tmp_path, caplog):
    started = start_trackers(tracked(tmp_path, "wandb", "mlflow"))

    def fails(values, step):
        raise OSError("no \x1b[2J network\nand more")

    fakes["mlflow"].log_metrics = fails
    with caplog.at_level(logging.WARNING):
        for step in (1, 2):
            started.log(step, {"train/loss": 1.0})
        started.end()
    [message] = [record.message for record in caplog.records]
    assert message == (
        "mlflow gets no more data of this run: no \\x1b[2J network"
    )
    assert fakes["wandb"].calls[1:] == [
        *((step, {"train/loss": 1.0}) for step in (1, 2)),
        "finish",
    ]


def test_a_tracker_that_cannot_start(fakes, tmp_path):
    def fails(**settings):
        raise RuntimeError("no API key\n...")

    fakes["wandb"].init = fails
    with pytest.raises(UserError, match=r"wandb: it cannot start: no API key$"):
        start_trackers(tracked(tmp_path, "wandb"))


def test_what_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("wandb", "mlflow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / name).mkdir()  # where W&B writes: no package
    found = importlib_finds(monkeypatch)
    with pytest.raises(UserError, match="--track mlflow needs its package"):
        check_trackers(["mlflow"])
    assert found == ["mlflow"]
    check_trackers([])
    with pytest.raises(UserError, match="--track wandb: it cannot start"):
        start_trackers(tracked(tmp_path, "wandb"))


def importlib_finds(monkeypatch):
    """As if only the folder could be found."""
    found = []

    def find_spec(name):
        found.append(name)
        return types.SimpleNamespace(origin=None)

    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    return found


def test_without_trackers_nothing_is_imported_or_written(tmp_path):
    run = tracked(tmp_path)
    started = start_trackers(run)
    started.log(1, {"train/loss": 1.0})
    started.end()
    assert [path.name for path in run.path.iterdir()] == ["config.json"]
    run.config.unlink()
    start_trackers(run).end()


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["a", "--track", "wandb", "mlflow", "--units", "8"], 3),
        (["a", "--track=wandb", "--units", "8"], 3),
        (["a", "--units", "8", "--track", "wandb"], 3),
        (["a", "--tracks", "8"], 3),
    ],
)
def test_a_trial_is_not_reported(words, kept):
    left = without(words, "--track")
    assert len(left) == kept
    assert "wandb" not in left


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of their own code
def test_real_trackers(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("WANDB_MODE", "offline")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    run = tracked(tmp_path, "wandb", "mlflow")
    log_epochs(run, 0, 1)
    log_epochs(run, 1, 2)
    ids = json.loads((run.path / "trackers.json").read_text())
    assert list(run.path.glob("wandb/offline-run-*"))
    [found] = mlflow.search_runs(
        experiment_names=["kseq"], output_format="list"
    )
    assert found.info.run_id == ids["mlflow"]
    assert found.data.params["units"] == "8"
    client = mlflow.MlflowClient()
    history = client.get_metric_history(ids["mlflow"], "validation/loss")
    found = [(each.step, each.value) for each in history]
    assert found == [(2, 3.0), (4, 2.0)]
