import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from kseq.runs import RunDirectory, RunError
from kseq.whole_files import write_whole


@dataclasses.dataclass(frozen=True)
class Config:
    units: int = 8
    steps: int = 100
    seed: int = 1
    overwrite: bool = False


@dataclasses.dataclass
class Tokenizer:
    model: bytes


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


def test_the_same_config_goes_on(run):
    run.metrics.write_text("{}\n")
    run.start(Config())
    assert run.metrics.read_text() == "{}\n"


def test_a_run_that_overwrote_another_goes_on(run):
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


def test_overwriting_starts_anew_and_spares_what_is_not_of_the_run(run):
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
    assert run.exists()


START = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from kseq.runs import RunDirectory
from tests.runs.test_run_directory import Config
RunDirectory(sys.argv[2]).start(Config())
print("trains", flush=True)
sys.stdin.read()
"""


def test_two_trainers_of_one_run(tmp_path):
    """C8: the second is refused; the lock of a dead one is none."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", START, root, str(tmp_path)]
    run = RunDirectory(tmp_path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"trains\n"
        with pytest.raises(RunError, match=f"trained by process {other.pid} "):
            run.start(Config(), overwrite=True)
        assert run.exists()
        other.kill()
    run.start(Config())


def test_a_run_that_was_deleted_is_locked_anew(run):
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


def test_other_tokenizers_are_refused(run):
    source, target = Tokenizer(b"source"), Tokenizer(b"target")
    run.save_tokenizers(source, target)
    run.save_tokenizers(source, target)
    assert run.source_tokenizer.read_bytes() == b"source"
    with pytest.raises(RunError, match=r"target\.model"):
        run.save_tokenizers(source, Tokenizer(b"other"))
    assert run.target_tokenizer.read_bytes() == b"target"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_whole(path, "old")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
