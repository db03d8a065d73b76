"""Built-in models in place of paths."""

import argparse
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import kseq
from kseq.command_line.argument_types import find_models, model_or_file
from kseq.command_line.recipe_options import read_options
from kseq.commands import serve
from kseq.files import model_path
from tests.commands.saved_run import saved_run
from tests.commands.some_lines import lines_of
from tests.recipe_models import make_served
from tests.recipes import load_recipe

VECTORS = [[[0.0, 1.0, 0.5]], [[1.0, 0.0, -1.0], [0.5, 0.5, 2.0]]]


@pytest.fixture(scope="module")
def bits():
    """What is traced soonest of all models."""
    return make_served("learn_algorithms lstm")


@pytest.fixture
def asked(bits, tmp_path, monkeypatch):
    """The names that were asked for; each is that of one run."""
    run = saved_run(bits, tmp_path / "bits")
    found = []

    def built_in_run(url):
        found.append(str(url))
        return run

    monkeypatch.setattr(model_path, "built_in_run", built_in_run)
    return found


def test_commands_and_load_take_it(asked, bits, predict):
    found = kseq.load("builtin://bits")(VECTORS)
    for one, other in zip(found, bits.predictor()(VECTORS), strict=True):
        np.testing.assert_array_equal(one, other)
    lines = lines_of(map(str, VECTORS))
    answers, _ = predict("builtin://dates", lines, "--json")
    assert len(answers) == len(VECTORS)
    assert asked == ["builtin://bits", "builtin://dates"]


def test_so_do_serve_and_compare(asked, tmp_path):
    run = tmp_path / "bits"
    named = [("mine", "builtin://bits")]
    found = serve._models(["builtin://bits"], named)
    assert found == {"bits": run, "mine": run}
    options = argparse.Namespace(a=model_or_file("builtin://dates"))
    find_models(options)
    assert options.a == run


def test_a_run_starts_from_it(asked, here):
    """Until the new run has started."""
    (here / "bits" / "config.json").write_text('{"units": 48}')
    page = load_recipe("translate_lstm")
    names = {"prog": "kseq train", "description": ""}
    words = ["--from", "builtin://bits", "--run", "new"]
    found = read_options(page.Config(), page.DATES, words, **names)
    assert (found.config.units, found.config.from_) == (48, "builtin://bits")
    assert asked == ["builtin://bits"]
    (here / "bits").rename(here / "new")
    read_options(page.Config(), page.DATES, words, **names)
    assert asked == ["builtin://bits"]


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "{}", "--beam-size", "0"),
        ("predict", "{}", "--prefix", "no-such-file"),
        ("predict", "{}", "--attention"),
        ("predict", "{}", "--glossary", "/dev/null", "--greedy"),
        ("predict", "{}", "/dev/null"),  # of an ensemble
        ("predict", "{}", "builtin://none"),
        ("compare", "{}", "{}", "/dev/null/source"),
        ("compare", "{}", "{}", __file__, "--page", "no/such/folder"),
        ("export", "{}", "--format", "argos"),
        ("publish", "{}", "nobody"),
        ("serve", "{}", "--port", "65536"),
        ("serve", "{}", "--model", "a/b={}"),
        ("serve", "{}", "--label", "stable"),
        ("train", "translate_lstm", "--from", "{}", "--steps", "0"),
        ("train", "translate_lstm", "--from", "{}", "--train", "/dev/null"),
        ("prepare", "--from", "{}", "--train", "/dev/null", "--to", "new"),
    ],
)
def test_what_is_wrong_is_refused_before_it_is_trained(
    command, asked, refused, here, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["kseq"])
    refused(*(word.format("builtin://dates") for word in command))
    assert not asked


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "builtin://none"),
        ("export", "builtin://none"),
        ("compare", "builtin://none", "b", "c"),
        ("serve", "--model", "a=builtin://none"),
        ("train", "translate_lstm", "--from", "builtin://none"),
    ],
)
def test_a_name_that_is_none(command, refused, here, monkeypatch):
    """`here`, no demo has left runs/dates."""
    monkeypatch.setattr(sys, "argv", ["kseq"])
    assert "NAME, with the name of a recipe or one of" in refused(*command)


@pytest.mark.slow  # it trains for minutes
def test_a_training_that_is_killed_is_resumed(here, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    command = [sys.executable, "-m", "kseq", "predict", "builtin://dates"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        while not [*here.glob("cache/**/checkpoints/last/*")]:
            assert process.poll() is None
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 143
    [config] = here.glob("cache/kseq/builtin/*/runs/dates/config.json")
    written = config.stat().st_mtime_ns
    answers = subprocess.run(
        command, input="3 mars 1999\n", capture_output=True, text=True
    )
    assert answers.stdout == "1999-03-03\n", answers.stderr
    assert config.stat().st_mtime_ns == written  # not a new run
    assert os.listdir(here) == ["cache"]
