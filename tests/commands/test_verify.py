"""Runs that are replayed."""

import json
import os
import subprocess
import sys

import pytest

from kseq import cli
from kseq.commands import verify
from kseq.runs.data_files import data_files
from kseq.runs.run_directory import environment_of

ROWS = [
    {"step": 2, "loss": 3.5, "gradient_norm": 0.1, "tokens_per_second": 9.0},
    {"step": 4, "loss": 2.5, "gradient_norm": 0.3, "tokens_per_second": 8.0},
    {"step": 4, "val_loss": 2.0},
    {"step": 6, "loss": 1.5, "gradient_norm": 0.2, "waiting_for_data": 0.5},
]


class Run:
    """The files of a run that are compared."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.train = path.parent / "train.tsv"
        self.train.write_text("a\tb\nc\td\n")
        config = {"seed": 3, "train": [str(self.train)]}
        self.write("config.json", config)
        self.write("data.json", data_files(config))
        self.write("environment.json", environment_of(3))
        words = ["kseq", "train", "translate_lstm", "--seed", "3"]
        words += ["--train", str(self.train)]
        self.write("command.json", {"command": words})
        lines = [json.dumps(row) for row in ROWS]
        # The last line is that of a process which was killed.
        text = "\n".join([*lines, '{"step": 8, "lo'])
        (path / "metrics.jsonl").write_text(text)

    def write(self, name, content):
        (self.path / name).write_text(json.dumps(content))

    def change(self, name, **values):
        content = json.loads((self.path / name).read_text())
        self.write(name, {**content, **values})


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "run")


@pytest.fixture
def replay(monkeypatch):
    """What a replay would give: dict, step -> metrics; and its arguments."""
    rows = {row["step"]: {**row, "tokens_per_second": 1.0} for row in ROWS}
    rows |= {row["step"]: dict(row) for row in ROWS if "loss" in row}
    asked = []

    def replayed(words, steps):
        asked.append((words, steps))
        return rows

    monkeypatch.setattr(verify, "_replayed", replayed)
    rows["asked"] = asked
    return rows


def verified(capsys, run, *options):
    code = cli.main(["verify", str(run.path), *options])
    found = capsys.readouterr()
    return code, found.out.splitlines(), found.err


def test_all_the_same(capsys, run, replay):
    replay[2]["tokens_per_second"] = 0.5  # another machine may be slower
    code, lines, _ = verified(capsys, run)
    assert code == 0
    assert [line.split("  ")[0] for line in lines] == [
        "versions",
        "data",
        "steps 1 to 2",
    ]
    assert lines[2].endswith("the same bits")
    words = ["train", "translate_lstm", "--seed", "3"]
    words += ["--train", str(run.train)]
    assert replay["asked"] == [(words, 2)]


@pytest.mark.parametrize(
    ("wanted", "last"), [("2", 2), ("3", 2), ("5", 4), ("6", 6), ("99", 6)]
)
def test_steps_that_were_recorded(capsys, run, replay, wanted, last):
    code, lines, _ = verified(capsys, run, "--steps", wanted)
    assert code == 0
    assert lines[-1].startswith(f"steps 1 to {last} ")
    assert replay["asked"][0][1] == last


def test_the_line_after_a_resumption_is_left_out(capsys, run, replay):
    """It has fewer steps than that of the replay."""
    text = run.path.joinpath("metrics.jsonl").read_text()
    cut = text.replace('"loss": 3.5', '"loss": 3.1, "resumed": true')
    run.path.joinpath("metrics.jsonl").write_text(cut)
    code, lines, _ = verified(capsys, run)
    assert code == 0
    assert lines[2].startswith("steps 1 to 4 ")


def test_other_numbers(capsys, run, replay):
    replay[4]["loss"] = 2.5000000001
    code, lines, _ = verified(capsys, run, "--steps", "2")
    assert code == 0
    code, lines, _ = verified(capsys, run, "--steps", "6")
    assert code == 1
    assert lines[-2:] == [
        "steps 1 to 6         different",
        "  step 4: loss: 2.5 -> 2.5000000001",
    ]
    del replay[4]["gradient_norm"]
    _, lines, _ = verified(capsys, run, "--steps", "6")
    assert "  step 4: gradient_norm: 0.3 -> None" in lines


def test_other_versions(capsys, run, replay):
    run.change("environment.json", keras="2.0", numpy="1\x1b[2J")
    code, lines, _ = verified(capsys, run)
    assert code == 1
    assert lines[0] == "versions             different"
    assert any(line.startswith("  keras: 2.0 -> 3.") for line in lines)
    assert any("numpy: 1\\x1b[2J -> " in line for line in lines)
    assert lines[-1].endswith("the same bits")


def test_changed_data(capsys, run, replay):
    run.train.write_text("a\tb\nc\te\n")
    code, lines, _ = verified(capsys, run)
    assert code == 1
    assert lines[1:3] == [
        "data                 different",
        f"  train: changed: {run.train}",
    ]
    # Data that have moved are missing: the command names their old path.
    run.train.rename(run.train.with_name("moved.tsv"))
    code, lines, error = verified(capsys, run)
    assert code == 2
    assert f"  train: missing: {run.train}" in lines
    assert "Start kseq verify in the folder" in error
    assert len(replay["asked"]) == 1


def test_a_run_that_was_resumed_with_moved_data(capsys, run, replay):
    """Its config has the new path, its command the old one."""
    moved = run.train.rename(run.train.with_name("moved.tsv"))
    run.change("config.json", train=[str(moved)])
    assert verified(capsys, run)[0] == 0
    [(words, _)] = replay["asked"]
    assert words[-2:] == ["--train", str(moved)]
    assert str(run.train) not in words
    assert words[:4] == ["train", "translate_lstm", "--seed", "3"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["kseq", "train", "./mine.py"], "a recipe of your own"),
        (["kseq", "train", "mine.py"], "a recipe of your own"),
        (["kseq", "train", "/tmp/evil"], "a recipe of your own"),
        (["kseq", "train"], "a recipe of your own"),
        (["kseq", "train", "nothing_like_it"], "there is no recipe"),
        (["python", "mine.py"], "cannot be replayed"),
        (["sh", "-c", "true"], "cannot be replayed"),
        ([], "cannot be replayed"),
        ("kseq train x", "cannot be replayed"),
        (None, "cannot be replayed"),
    ],
)
def test_commands_that_are_not_replayed(capsys, run, replay, command, message):
    run.write("command.json", {"command": command})
    code, _, error = verified(capsys, run)
    assert code == 2
    assert message in error
    assert replay["asked"] == []


def test_nothing_to_compare(capsys, run, replay):
    code, _, error = verified(capsys, run, "--steps", "1")
    assert (code, "first recorded step is 2" in error) == (2, True)
    (run.path / "metrics.jsonl").write_text(
        '[]\n{"step": 1}\nx\n{"loss": 1}\n{"step": "1", "loss": 1}\n'
    )
    code, _, error = verified(capsys, run)
    assert (code, "no steps to compare" in error) == (2, True)
    os.remove(run.path / "metrics.jsonl")
    code, _, error = verified(capsys, run)
    assert (code, "no steps to compare" in error) == (2, True)
    os.remove(run.path / "command.json")
    assert verified(capsys, run)[0] == 2


def test_what_a_replay_prints_when_it_fails(capsys, run):
    """The recipe runs: its option is wrong, which it says at once."""
    words = ["kseq", "train", "translate_lstm", "--units", "-1"]
    run.write("command.json", {"command": words})
    code, _, error = verified(capsys, run)
    assert code == 2
    assert "ended before step 2" in error
    assert "units" in error


@pytest.mark.slow
def test_a_run_is_replayed(capsys, here):
    train = [sys.executable, "-m", "kseq", "train", "translate_lstm"]
    small = ["--steps", "60", "--units", "16", "--embedding-dim", "8"]
    subprocess.run([*train, *small, "--run", "runs/a"], check=True)
    before = {path.name for path in here.rglob("*")}
    assert cli.main(["verify", "runs/a"]) == 0
    assert "the same bits" in capsys.readouterr().out
    assert {path.name for path in here.rglob("*")} == before
    metrics = here / "runs" / "a" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"loss": ', '"loss": 1', 1))
    assert cli.main(["verify", "runs/a"]) == 1
    assert "step 50: loss: 1" in capsys.readouterr().out
