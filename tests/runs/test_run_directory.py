import dataclasses
import json
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import keras
import pytest

from kseq.model_path import is_run
from kseq.runs import RunDirectory, RunError
from kseq.whole_files import write_whole


@dataclasses.dataclass(frozen=True)
class Config:
    units: int = 8
    steps: int = 100
    seed: int = 1
    overwrite: bool = False


def model(units=8, optimizer="adam"):
    inputs = keras.Input((4,), name="inputs")
    outputs = keras.layers.Dense(units, name="dense")(inputs)
    model = keras.Model(inputs, outputs, name="tiny")
    model.compile(optimizer)
    return model


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "runs" / "tiny")
    run.start(Config())
    return run


def test_a_new_run_has_its_numbers_and_its_environment(run):
    assert json.loads(run.config.read_text()) == {
        "units": 8,
        "steps": 100,
        "seed": 1,
    }
    environment = json.loads(run.environment.read_text())
    assert environment["seed"] == 1
    assert environment["keras"] == keras.version()


def test_the_same_config_resumes(run):
    run.metrics.write_text("{}\n")
    run.start(Config())
    assert run.metrics.read_text() == "{}\n"


def test_a_run_that_overwrote_another_resumes(run):
    run.start(Config(overwrite=True), overwrite=True)
    run.start(Config())


def test_another_config_is_refused_with_what_differs(run):
    with pytest.raises(RunError) as caught:
        run.start(Config(units=16, steps=200, seed=2), may_change=("steps",))
    message = str(caught.value)
    assert "units: 8 -> 16" in message
    assert "seed: 1 -> 2" in message
    assert "steps" not in message
    assert json.loads(run.config.read_text())["units"] == 8


def test_what_may_change_is_told_and_kept(run, capsys):
    run.start(Config(steps=200), may_change=("steps",))
    assert "steps: 100 -> 200" in capsys.readouterr().err
    assert json.loads(run.config.read_text())["steps"] == 200


def test_overwriting_deletes_the_run_and_spares_other_files(run):
    run.metrics.write_text("{}\n")
    run.checkpoints.mkdir()
    (run.path / "notes.txt").write_text("mine")
    run.start(Config(units=16), overwrite=True)
    assert json.loads(run.config.read_text())["units"] == 16
    assert not run.metrics.exists()
    assert not run.checkpoints.exists()
    assert (run.path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_is_no_run_is_refused(tmp_path, overwrite):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RunError, match=r"is not a run: it holds config\.json"):
        RunDirectory(tmp_path).start(Config(), overwrite=overwrite)
    assert (tmp_path / "config.json").read_text() == "{}"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError, match="run cannot be used: File exists"):
        RunDirectory(tmp_path / "run").start(Config())


def test_a_start_that_was_killed_can_be_repeated(run):
    run.config.rename(run.path / "config.json.part")
    run.start(Config())
    assert is_run(run.path)


START = """
import sys
import types
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from kseq.model_path import is_run
from kseq.runs import RunDirectory
from tests.runs.test_run_directory import Config
RunDirectory(sys.argv[2]).start(Config())
print("trains", flush=True)
sys.stdin.read()
"""


def test_two_trainers_of_one_run(tmp_path):
    """The second is refused; a process that died holds no lock."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", START, root, str(tmp_path)]
    run = RunDirectory(tmp_path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"trains\n"
        with pytest.raises(RunError, match=f"trained by process {other.pid} "):
            run.start(Config(), overwrite=True)
        assert is_run(run.path)
        other.kill()
    run.start(Config())


def test_a_run_that_was_deleted_is_locked_again(run):
    shutil.rmtree(run.path)
    run.start(Config())
    assert run.lock.read_text().startswith(f"process {os.getpid()} ")


def test_a_broken_config_is_one_message(run):
    run.config.write_text("{")
    with pytest.raises(RunError, match=r"config\.json is broken"):
        run.start(Config())


def test_another_model_is_refused(run):
    run.save_model(model())
    run.save_model(model())
    with pytest.raises(RunError, match=r"config\.units: 8 -> 16"):
        run.save_model(model(units=16))


def test_another_optimizer_is_refused(run):
    run.save_model(model())
    with pytest.raises(RunError, match=r"optimizer\.class_name: Adam -> SGD"):
        run.save_model(model(optimizer="sgd"))


def served(source=b"source", target=b"target", beam_size=4):
    tokenizers = {
        "source": types.SimpleNamespace(model=source),
        "target": types.SimpleNamespace(model=target),
    }
    return types.SimpleNamespace(
        model=model(),
        tokenizers=tokenizers,
        get_config=lambda: {"search": {"beam_size": beam_size}},
    )


def test_what_is_trained_is_saved(run):
    run.save(served())
    run.save(served())
    assert run.tokenizer("source").read_bytes() == b"source"
    assert run.read_task() == {"search": {"beam_size": 4}}
    assert run.read_model()["config"]["name"] == "tiny"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"target": b"other"}, r"target\.model"),
        ({"beam_size": 5}, r"search\.beam_size: 4 -> 5"),
    ],
)
def test_a_different_task_is_refused(run, other, message):
    run.save(served())
    with pytest.raises(RunError, match=message):
        run.save(served(**other))
    assert run.tokenizer("target").read_bytes() == b"target"


def test_another_version_may_have_more_options(run):
    environment = json.loads(run.environment.read_text())
    run.environment.write_text(json.dumps(environment | {"kseq": "0.1.0"}))
    config = json.loads(run.config.read_text())
    del config["seed"]
    run.config.write_text(json.dumps(config))
    run.start(Config())


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_whole(path, "old")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
