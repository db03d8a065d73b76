"""What a training will cost."""

import contextlib
import itertools
import os
import sys
import types

import pytest

from kseq import cli
from kseq.commands import lr_find, plan

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
def trial(monkeypatch, clock, tmp_path_factory):
    """Rows, and the seconds at which they come; the words of the command."""
    trial = types.SimpleNamespace(
        rows=[
            *((30, dict(TRAIN[0])), (40, dict(TRAIN[1]))),
            (60, dict(VALIDATION)),
        ],
        ended=75,
        code=0,
        last_line=lambda: "kseq train: the disk is full",
        metrics=tmp_path_factory.mktemp("trial") / "metrics.jsonl",
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

    for command in (plan, lr_find):
        monkeypatch.setattr(command, "trial_run", trial_run)
    monkeypatch.setattr(plan, "_peak_memory", lambda: 1.25e9)
    return trial


@pytest.fixture
def planned(capsys, monkeypatch, here):
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


def test_a_training_on_gpus(planned, trial):
    """The peak is the highest of all rows."""
    for (_, row), peak in zip(trial.rows, (7.0, 8.04, 9.5), strict=True):
        row["gpu_memory"] = peak
    environment = trial.metrics.with_name("environment.json")
    environment.write_text('{"device": "2 x NVIDIA H200"}')
    code, lines, _ = planned("translate_lstm")
    assert code == 0
    assert lines[6].split()[:4] == ["GPU", "memory", "9.5", "GB"]
    assert lines[7].split() == ["device", "2", "x", "NVIDIA", "H200"]
    assert lines[6].index("at the peak") == lines[7].index("2 x")


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
    assert trial.words[-6:-4] == ["--pretraining-steps", "0"]
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
        (["translate_lstm", "--steps", "100"], "itself trains 100 steps"),
        (["translate_lstm", "--steps", "-1"], "steps"),
        (["translate_lstm", "--stesp", "9"], "Did you mean --steps?"),
        (["translate_lstm", "--train", "a", "b"], "no file 'a'"),
        (["translate_lstm", "--lr-find", "a.png"], "must come before"),
        (["--lr-find", "", "translate_lstm"], "--lr-find: the value is empty"),
        (["--lr-find", "no/a.png", "translate_lstm"], "no folder 'no'"),
        (["--lr-find", ".", "translate_lstm"], "is a directory"),
        (["--lr-find", os.devnull, "translate_lstm"], "pipe or a device"),
        (["--lr-find", "a.png"], "needs a recipe"),
        (["--lr-find", "a.png", "learn_algorithms"], "has no schedule"),
    ],
)
def test_mistakes(planned, trial, words, message):
    code, lines, notes = planned(*words)
    assert (code, lines) == (2, [])
    assert message in notes
    assert notes.count("\n") == 1
    assert notes.startswith("kseq plan")
    assert not hasattr(trial, "words")


def curve(loss_of, steps=200):
    """Rows of a range test, a second each, with the rate of the next one."""
    rates = [10 ** (-5 + step / 40) for step in range(1, steps + 2)]
    return [
        (step, {"step": step, "learning_rate": after, "loss": loss_of(rate)})
        for step, (rate, after) in enumerate(itertools.pairwise(rates), 1)
    ]


def falls_until(rate, then):
    return lambda r: 3.0 / (1 + 100 * r) if r < rate else then


FIND = (
    *("--lr-find", "rates.png", "translate_lstm", "--units", "8"),
    *("--warmup_steps", "9"),  # which a range test has not
)


def test_the_rate_that_a_range_test_suggests(planned, trial, tmp_path):
    trial.rows = curve(falls_until(0.1, 30.0))
    code, lines, notes = planned(*FIND)
    assert (code, notes) == (0, "")
    assert trial.words == [
        *("train", "translate_lstm", "--units", "8"),
        *("--steps", "200", "--evaluate-every", "200"),
        *("--schedule", "range_test", "--learning-rate", "1.0"),
    ]
    words = lines[1].split()
    assert words[:2] == ["suggestion", "--learning-rate"]
    assert float(words[2].rstrip(",")) == 0.0094  # 10 ** (-5 + 159 / 40) / 10
    assert lines[2].endswith("--learning-rate 0.005")
    assert (tmp_path / "rates.png").read_bytes()[1:4] == b"PNG"
    assert os.listdir(tmp_path) == ["rates.png"]


def test_a_range_test_ends_where_training_diverges(planned, trial):
    """In time, and with what a process has written that has diverged."""
    rows = [row for _, row in curve(falls_until(0.1, 30.0))]
    assert not lr_find._is_over(rows[:159])
    assert lr_find._is_over(rows[:160])  # whose rate is 0.1
    trial.rows, trial.code = curve(falls_until(1.0, 0.0), steps=100), 3
    code, lines, _ = planned(*FIND)
    assert (code, len(lines)) == (0, 4)
    for trial.code, steps in ((3, 19), (4, 100), (-9, 100)):
        trial.rows = curve(falls_until(1.0, 0.0), steps)
        code, lines, notes = planned(*FIND)
        assert (code, lines) == (max(trial.code, 2), [])
        assert f"with exit code {trial.code}: kseq train" in notes
    trial.code, trial.rows = 0, curve(falls_until(1.0, 0.0), steps=19)
    assert "no metrics of its steps" in planned(*FIND)[2]


def test_a_loss_that_falls_at_no_rate(planned, trial, tmp_path):
    trial.rows = curve(lambda rate: 3.0 + rate)
    code, lines, notes = planned(*FIND)
    assert (code, lines) == (2, [])
    assert "falls at no learning rate from 1e-05 to 1" in notes
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_range_test_of_a_training(planned, tmp_path):
    code, lines, _ = planned(
        *("--lr-find", "rates.png", "translate_lstm", "--units", "8"),
        *("--embedding-dim", "4", "--beam-size", "1"),
    )
    assert (code, len(lines)) == (0, 4)
    assert os.listdir(tmp_path) == ["rates.png"]


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
