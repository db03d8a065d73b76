import dataclasses
import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from kseq.command_line.option_types import PositiveInt, TrainingOptions
from kseq.runs import RunError
from kseq.training import choose_dropout, set_seed, start_run
from kseq.user_error import UserError


@dataclasses.dataclass(frozen=True)
class Config(TrainingOptions):
    run: str = "runs/tiny"
    steps: PositiveInt = 8
    learning_rate: float = 0.1
    schedule: str = "inverse_sqrt"
    patience: PositiveInt = 3
    metrics: tuple[str, ...] = ("bleu",)
    vectors: str = ""
    batch_tokens: PositiveInt = 64
    units: PositiveInt = 4


def test_steps_patience_and_batches_may_change(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run, config = start_run(Config())
    run.save_model(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
    changed = dataclasses.replace(config, steps=9, patience=2, batch_tokens=32)
    run, config = start_run(changed)
    assert config == changed
    assert capfd.readouterr().err.count("runs/tiny resumes with") == 3
    with pytest.raises(RunError, match="units: 4 -> 5"):
        start_run(dataclasses.replace(changed, units=5))


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "constant", "cosine"])
def test_a_schedule_that_ends_with_the_steps_keeps_them(
    tmp_path, monkeypatch, schedule
):
    monkeypatch.chdir(tmp_path)
    run, config = start_run(Config(schedule=schedule))
    run.save_model(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
    more = dataclasses.replace(config, steps=9)
    if schedule == "cosine":
        with pytest.raises(RunError, match=r"config:\n  steps: \d -> 9"):
            start_run(more)
    else:
        assert start_run(more)[1] == more


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ("bleu", "comet")}, "needs the program comet-score"),
        ({"vectors": "none.vec"}, "There is no file 'none.vec'"),
        ({"vectors": "runs"}, "runs is a directory"),
    ],
)
def test_what_is_missing_is_found_first(
    tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "runs").mkdir()
    with pytest.raises(UserError, match=message):
        start_run(Config(**options))
    assert not (tmp_path / "runs/tiny/config.json").exists()


@dataclasses.dataclass(frozen=True)
class WithDropout(Config):
    dropout: float | None = None


def test_a_large_corpus_needs_less_dropout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])

    def start(path, *counts, dropout=None, **options):
        corpus = types.SimpleNamespace(counts=counts)
        run, config = start_run(WithDropout(run=path, dropout=dropout))
        config = choose_dropout(run, config, corpus, **options)
        run.save_model(model)
        stored = json.loads(run.config.read_text())["dropout"]
        assert stored == config.dropout
        return stored

    assert start("small", 60_000, 40_000) == 0.3
    assert start("smaller", 60_000, small=0.4) == 0.4
    assert start("large", 60_000, 40_001, small=0.4) == 0.1
    assert start("given", 60_000, dropout=0.0) == 0.0
    # A run that resumes keeps it, whatever the rule is by then.
    monkeypatch.setitem(choose_dropout.__globals__, "_SMALL", 10)
    assert start("small", 60_000, 40_000) == 0.3
    assert start("given", 60_000) == 0.0
    with pytest.raises(RunError, match=r"dropout: 0\.1 -> 0\.2"):
        start("large", 60_000, 40_001, dropout=0.2)


def test_the_seed_is_that_of_all_that_draws():
    def draw():
        set_seed(5)
        drawn = keras.random.normal((3,)), tf.random.normal((3,))
        return np.stack([*drawn, np.random.normal(size=3)])

    np.testing.assert_array_equal(draw(), draw())


def test_determinism_is_asked_of_tensorflow(monkeypatch):
    # It would hold for all tests of this process; test_chaos.py has it real.
    asked = []
    monkeypatch.setattr(
        tf.config.experimental,
        "enable_op_determinism",
        lambda: asked.append(True),
    )
    set_seed(1)
    assert not asked
    set_seed(1, deterministic=True)
    assert asked
