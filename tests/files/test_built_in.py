"""Built-in models; a small program takes the place of their training."""

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

import kseq
from kseq.files import built_in
from kseq.files.built_in import built_in_run, recipe_pages
from kseq.user_error import UserError
from tests.recipes import load_recipe
from tests.test_recipes import BUILT_IN
from tests.waiting import wait_for

# Writes what a training leaves, after as long as the file `wait` exists.
PROGRAM = """
import pathlib, sys, time
folder, *words = map(pathlib.Path, sys.argv[1:])
with open(folder / "started", "a") as file:
    print(*words, file=file)
run = folder / "runs" / "dates"
run.mkdir(parents=True, exist_ok=True)
(run / "metrics.jsonl").write_text('{"step": 50, "loss": 1}')
while (folder / "wait").exists():
    time.sleep(0.01)
if (folder / "fail").exists():
    sys.exit("kseq train: the disk is full")
export = folder / "saved_models" / "dates" / "1"
export.mkdir(parents=True)
(export / "saved_model.pb").touch()
for name in ("config.json", "environment.json"):
    (run / name).write_text("{}")
"""
# A background job of a shell ignores Ctrl-C.
ASK = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from kseq.files import built_in
built_in._PROGRAM = {program!r}
print(built_in.built_in_run("builtin://dates"))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(built_in, "_PROGRAM", PROGRAM)
    return tmp_path / "kseq" / "builtin" / kseq.__version__


def started(folder):
    return (folder / "started").read_text().splitlines()


def ask():
    return subprocess.Popen(
        [sys.executable, "-c", ASK.format(program=PROGRAM)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_it_is_trained_once(folder):
    for name in ("dates", "dates", "translate_lstm"):
        run = built_in_run(f"builtin://{name}")
        assert run == folder / "runs" / "dates"
    assert started(folder) == ["train translate_lstm"]


def test_of_several_processes_one_trains(folder):
    folder.mkdir(parents=True)
    (folder / "wait").touch()
    processes = [ask() for _ in range(2)]
    wait_for((folder / "started").exists, 60)
    time.sleep(0.2)  # of a second training
    (folder / "wait").unlink()
    for process in processes:
        output, _ = process.communicate(timeout=60)
        assert output.strip() == str(folder / "runs" / "dates")
    assert len(started(folder)) == 1


def test_a_training_outlives_a_process_that_is_killed(folder):
    """The next process waits for it."""
    folder.mkdir(parents=True)
    (folder / "wait").touch()
    with ask() as process:
        wait_for((folder / "runs/dates/metrics.jsonl").exists, 60)
        process.kill()
    with open(folder / "dates.lock") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (folder / "wait").unlink()
    built_in_run("builtin://dates")
    assert len(started(folder)) == 1


def test_a_process_that_is_stopped_stops_its_training(folder):
    """It is resumed when it is asked for again."""
    folder.mkdir(parents=True)
    (folder / "wait").touch()
    for number in (signal.SIGTERM, signal.SIGINT):
        (folder / "runs/dates/metrics.jsonl").unlink(missing_ok=True)
        with ask() as process:
            wait_for((folder / "runs/dates/metrics.jsonl").exists, 60)
            os.kill(process.pid, number)
            assert process.wait(timeout=60) != 0
    (folder / "wait").unlink()
    assert not (folder / "saved_models").exists()
    built_in_run("builtin://dates")
    assert len(started(folder)) == 3


def test_a_training_that_fails(folder):
    folder.mkdir(parents=True)
    (folder / "fail").touch()
    message = r"training of .*runs/dates has .* 1: kseq train: the disk is full"
    with pytest.raises(UserError, match=message) as failed:
        built_in_run("builtin://dates")
    assert failed.value.exit_code == 1
    (folder / "fail").unlink()
    built_in_run("builtin://dates")


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "kseq").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        built_in_run("builtin://dates")


@pytest.mark.parametrize(
    "name", ["", "date", "lstm", "../dates", "dates/", "Dates", "dates@main"]
)
def test_names_that_are_none(folder, name):
    with pytest.raises(UserError, match=r"algorithm, .*dates, .*brackets"):
        built_in_run(f"builtin://{name}")
    assert not folder.exists()


@pytest.mark.parametrize("recipe", BUILT_IN)
def test_the_names_are_those_of_the_runs(folder, recipe):
    config = getattr(load_recipe(recipe), BUILT_IN[recipe])
    assert built_in.recipe_and_run(f"builtin://{recipe}") == (
        recipe,
        config.run.removeprefix("runs/"),
    )


def test_each_recipe_has_another_name(folder):
    pairs = {
        built_in.recipe_and_run(f"builtin://{recipe}")
        for recipe in recipe_pages()
    }
    assert len({run for _, run in pairs}) == len(recipe_pages())
