"""What a training will cost."""

import contextlib
import os
import sys
import types

import pytest

from kseq import __main__ as cli
from kseq.commands import plan

TRAIN = [{"step": 50, "loss": 3.0}, {"step": 100, "loss": 2.0}]
TRAIN[1]["tokens_per_second"] = 12345.6
VALIDATION = {"step": 100, "val_loss": 2.0}


@pytest.fixture
def clock(monkeypatch):
    """Seconds, which only the trial adds to."""
    now = [0.0]
    monkeypatch.setattr(
        plan, "time", types.SimpleNamespace(monotonic=lambda: now[0])
    )
    return now


@pytest.fixture
def trial(monkeypatch, clock):
    """Rows, and the seconds at which they come; the words of the command."""
    trial = types.SimpleNamespace(
        rows=[(30, TRAIN[0]), (40, TRAIN[1]), (60, VALIDATION)],
        ended=75,
        code=0,
        last_line=lambda: "kseq train: the disk is full",
    )

    def wait_for(has_come=None):
        rows = []
        for seconds, row in trial.rows:
            rows.append(row)
            if has_come and has_come(rows):
                clock[0] = max(clock[0], seconds)
                return rows
        clock[0] = trial.ended
        return None if has_come else rows

    trial.wait_for = wait_for

    @contextlib.contextmanager
    def trial_run(words):
        trial.words = words
        yield trial

    monkeypatch.setattr(plan, "trial_run", trial_run)
    monkeypatch.setattr(plan, "_peak_memory", lambda: 1.25e9)
    return trial


@pytest.fixture
def planned(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def planned(*words):
        monkeypatch.setattr(sys, "argv", ["kseq"])
        try:
            code = cli.main(["plan", *words])
        except SystemExit as left:
            code = left.code
        found = capsys.readouterr()
        return code, found.out.splitlines(), found.err

    return planned


def test_the_parts_of_a_training(planned, trial):
    """50 steps take 10 seconds, a validation 20, and the end 15."""
    code, lines, notes = planned(
        *("translate_lstm", "--steps", "1100", "--evaluate-every", "500")
    )
    assert (code, notes) == (0, "")
    words = [line.split()[:3] for line in lines[:6]]
    assert words == [
        ["start", "20", "s"],
        ["training", "3.7", "min"],
        ["validation", "60", "s"],
        ["end", "15", "s"],
        ["total", "5.2", "min"],
        ["memory", "1.2", "GB"],
    ]
    assert "1,100 steps of 0.2 s, 12,346 tokens per second" in lines[1]
    assert "3 times 20 s" in lines[2]
    assert lines[4].endswith("at most, less if --patience 8 ends it")
    assert lines[6].startswith("Multi30k German to English")
    assert len(lines) == 7


def test_the_command_that_is_tried(planned, trial):
    planned("lstm", "--units", "8", "--run", "runs/mine")
    assert trial.words == [
        *("train", "lstm", "--units", "8", "--run", "runs/mine"),
        *("--steps", "100", "--evaluate-every", "100"),
    ]


def test_pretraining_counts_as_steps(planned, trial):
    options = ("--steps", "1000", "--pretraining-steps", "2000")
    code, lines, _ = planned("translate_transformer", *options)
    assert code == 0
    assert trial.words[-2:] == ["--pretraining-steps", "0"]
    assert "3,000 steps of 0.2 s" in lines[1]
    assert lines[4].endswith("at most")


def test_a_recipe_of_ones_own(planned, trial, tmp_path):
    page = """
import dataclasses
import kseq

@dataclasses.dataclass(frozen=True)
class Config:
    steps: int = 300
    {field}

if __name__ == "__main__":
    kseq.run_recipe(print, Config(), without_files=Config())
"""
    path = tmp_path / "mine.py"
    path.write_text(page.format(field="evaluate_every: int = 150"))
    code, lines, _ = planned("./mine.py")
    assert (code, len(lines)) == (0, 6)
    assert "2 times 20 s" in lines[2]
    path.write_text(page.format(field=""))
    code, lines, notes = planned("./mine.py")
    assert (code, lines) == (2, [])
    assert "its Config has no evaluate_every" in notes


def test_without_validation(planned, trial):
    del trial.rows[2]
    code, lines, _ = planned("translate_lstm", "--steps", "1100")
    assert code == 0
    assert lines[2].split()[:3] == ["validation", "0", "s"]
    assert lines[3].split()[:3] == ["end", "35", "s"]


def test_a_trial_that_fails(planned, trial):
    del trial.rows[1:]
    for trial.code, expected in ((4, 4), (-9, 2)):
        code, lines, notes = planned("translate_lstm")
        assert (code, lines) == (expected, [])
        message = f"with exit code {trial.code}: kseq train: the disk is full"
        assert message in notes
    trial.code = 0
    code, lines, notes = planned("translate_lstm")
    assert (code, lines) == (2, [])
    assert "no metrics of 100 steps" in notes
    assert notes.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a recipe"),
        (["nothing_like_it"], "there is no recipe"),
        (["translate_lstm", "--steps", "100"], "trains 100 steps itself"),
        (["translate_lstm", "--steps", "-1"], "steps"),
        (["translate_lstm", "--stesp", "9"], "Did you mean --steps?"),
        (["translate_lstm", "--train", "a", "b"], "no file 'a'"),
    ],
)
def test_mistakes(planned, trial, words, message):
    code, lines, notes = planned(*words)
    assert (code, lines) == (2, [])
    assert message in notes
    assert notes.count("\n") == 1
    assert notes.startswith("kseq plan")
    assert not hasattr(trial, "words")


@pytest.mark.slow
def test_nothing_stays_of_a_training_that_is_tried(planned, tmp_path):
    code, lines, _ = planned(
        *("translate_lstm", "--units", "8", "--embedding-dim", "4"),
        *("--beam-size", "1", "--steps", "1000"),
    )
    assert code == 0
    assert [line.split()[0] for line in lines[:6]] == [
        *("start", "training", "validation", "end", "total", "memory")
    ]
    assert os.listdir(tmp_path) == []
