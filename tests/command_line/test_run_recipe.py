import dataclasses
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Annotated

import pytest
import tensorflow as tf

from kseq import run_recipe
from kseq.command_line.option_types import EvenSize, MultipleOf, PositiveInt
from kseq.command_line.recipe_options import read_options
from kseq.user_error import DiskError, UserError


@dataclasses.dataclass(frozen=True)
class Config:
    """Does nothing."""

    train: tuple[str, ...] = ()
    features: str = ""
    source: str = ""
    steps: int = 10
    batch_tokens: int = 64


@dataclasses.dataclass(frozen=True)
class FineTuned(Config):
    """Begins with another run."""

    from_: str = ""
    units: EvenSize = 8
    heads: PositiveInt = 2
    width: Annotated[int, MultipleOf("heads")] = 8
    balanced: bool = False


@dataclasses.dataclass(frozen=True)
class Classified(FineTuned):
    """Has a name that version 0.1 did not have."""

    batch_pieces: int = 4


@pytest.fixture
def run(monkeypatch, here):
    for name in ("a", "b"):
        (here / name).write_text("x")

    def run(main, *words):
        monkeypatch.setattr(sys, "argv", ["recipe", *words])
        monkeypatch.setattr(sys.modules["__main__"], "__doc__", "A recipe.")
        run_recipe(main, Config(), without_files=Config(steps=3))

    return run


@pytest.mark.parametrize(
    "words, config",
    [
        ((), Config(steps=3)),
        (("--steps", "5"), Config(steps=5)),
        (("--train", "a", "b"), Config(train=("a", "b"), steps=10)),
        (("--train=a", "--steps=5"), Config(train=("a",), steps=5)),
    ],
)
def test_files_decide_on_the_defaults(run, words, config):
    configs = []
    run(configs.append, *words)
    assert configs == [config]


@pytest.mark.parametrize(
    "error, code, message",
    [
        (UserError("No such file."), 2, "recipe: No such file.\n"),
        (DiskError("It is full."), 4, "recipe: It is full.\n"),
        (
            OSError(28, "No space"),
            4,
            "recipe: standard output, or a temporary file, cannot be written: "
            "No space.\n",
        ),
        (OSError(28, "No space", "a.txt"), 4, "recipe: a.txt: No space.\n"),
        (
            FileNotFoundError(2, "No usable temporary directory found in []"),
            2,
            "recipe: No usable temporary directory found in []. Set TMPDIR to "
            "a directory that can be written.\n",
        ),
        (MemoryError(), 4, "recipe: Out of memory. (--batch-tokens is 64)\n"),
        (
            tf.errors.ResourceExhaustedError(None, None, "OOM\nat x"),
            *(4, "recipe: OOM (--batch-tokens is 64)\n"),
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_exit_codes(run, capsys, error, code, message):
    def main(config):
        raise error

    with pytest.raises(SystemExit) as stop:
        run(main)
    assert stop.value.code == code
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("wrap", [lambda act: act, tf.function])
def test_a_disk_that_tensorflow_finds_full(run, capfd, wrap):
    """The size of a batch has nothing to do with it."""

    def main(config):
        tf.io.write_file("/dev/full", "text")

    with pytest.raises(SystemExit, match="4"):
        run(wrap(main))
    assert capfd.readouterr().err.splitlines()[-1] == (
        "recipe: /dev/full; No space left on device"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("{{node A}} /a; Disk quota exceeded [Op:A]", "/a; Disk quota exceed"),
        ("Graph execution error:\n\nAt a.py\nOOM when [Op:A]", "OOM when ("),
        ("", "Out of memory. (--batch-tokens is 64)"),
    ],
)
def test_what_is_exhausted_is_one_line(run, capsys, text, message):
    def main(config):
        raise tf.errors.ResourceExhaustedError(None, None, text)

    with pytest.raises(SystemExit, match="4"):
        run(main)
    error = capsys.readouterr().err
    assert error.startswith(f"recipe: {message}") and error.count("\n") == 1


def test_what_standard_output_cannot_show_is_escaped(
    run, monkeypatch, tmp_path
):
    with open(tmp_path / "out", "w", encoding="ascii") as file:
        monkeypatch.setattr(sys, "stdout", file)
        run(lambda config: print("\u2013 \udcff"))
    assert (tmp_path / "out").read_bytes() == b"\\u2013 \\udcff\n"


def test_an_error_of_ours_keeps_its_traceback(run):
    def main(config):
        raise OSError(9, "Bad file descriptor")

    with pytest.raises(OSError, match="Bad file"):
        run(main)


def test_debug_keeps_the_traceback(run, monkeypatch):
    def main(config):
        raise UserError("No such file.")

    monkeypatch.setenv("KSEQ_DEBUG", "1")
    with pytest.raises(UserError):
        run(main)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "nothing"], "--from: nothing is neither .* not exist"),
        (["--zzz"], "no option --zzz. --help lists"),
    ],
)
def test_a_wrong_option_is_named(words, message, capsys):
    config = FineTuned()
    with pytest.raises(SystemExit, match="2"):
        read_options(config, config, words, prog="recipe", description="One.")
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "expected a JSON object"),
        *(
            (json.dumps({name: value}), f"--{name}: expected")
            for name, value in [
                *(("units", 7), ("units", "a"), ("units", [8])),
                *(("units", None), ("units", 8.0), ("units", True)),
                *(("heads", 0), ("heads", "2"), ("heads", -1)),
                *(("width", 3), ("balanced", "no")),
            ]
        ),
    ],
)
def test_a_broken_config_of_another_run_is_named(tmp_path, text, message):
    (tmp_path / "environment.json").write_text("{}")
    path = tmp_path / "config.json"
    path.write_text(text)
    config = FineTuned()
    words = ["--from", str(tmp_path)]
    with pytest.raises(UserError) as caught:
        read_options(config, config, words, prog="recipe", description="One.")
    assert str(caught.value).startswith(f"{path} is broken: ")
    assert message in str(caught.value)


def test_a_run_of_version_0_1_has_other_names(tmp_path):
    (tmp_path / "environment.json").write_text("{}")
    (tmp_path / "config.json").write_text('{"units": 6, "batch_words": 9}')
    config = Classified()
    words = ["--from", str(tmp_path)]
    found = read_options(config, config, words, prog="a", description="One.")
    assert (found.config.units, found.config.batch_pieces) == (6, 9)


def test_sigterm_before_training_exits_in_order(run):
    before = signal.getsignal(signal.SIGTERM)
    ended = []

    def main(config):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            ended.append(config)

    with pytest.raises(SystemExit) as stop:
        run(main)
    assert stop.value.code == 143
    assert ended and signal.getsignal(signal.SIGTERM) is before


def test_a_recipe_reads_local_copies(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tf.io.gfile.makedirs("ram://recipe")
    tf.io.gfile.copy("a", "ram://recipe/c", overwrite=True)
    seen = []
    options = ("--train", "b", "ram://recipe/c", "--features", "ram://recipe/c")
    run(seen.append, *options, "--source", "ram://recipe/c")
    local, copy = seen[0].train
    assert local == "b"
    assert copy.startswith(str(tmp_path / "cache"))
    assert Path(copy).read_text() == "x"
    assert seen[0].features == copy
    assert seen[0].source == "ram://recipe/c"  # may mean something else


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ram://recipe/none", "There is no file 'ram://recipe/none'."),
        ("none://x/y", "no file system for none://"),
    ],
)
def test_urls_that_cannot_be_read(run, capsys, url, message):
    with pytest.raises(SystemExit) as stopped:
        run(print, "--train", url)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
