"""The wheel in a fresh environment of each Python, as a user installs it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kseq.data.built_in import dates

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
SERVING = (ROOT / "docs/tutorials/serving.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
ALONE = {**os.environ, "PYTHONPATH": ""}
TRAIN = [
    *("train", "translate_lstm", "--train", "dates.tsv"),
    *("--columns", "text", "iso", "--run", "runs/dates"),
    *("--vocab-size=600", "--embedding-dim=32", "--units=64"),
    *("--steps=60", "--evaluate-every=20"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, *("-m", "pip", "wheel", "--no-deps"), str(ROOT)],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("kseq-*.whl")
    return wheel


@pytest.fixture(params=["3.11", "3.12", "3.13"])
def environment(request, wheel, tmp_path):
    """The commands of an environment that has kseq and what it depends on."""
    name = f"python{request.param}"
    if not shutil.which(name):
        pytest.skip(f"there is no {name}")
    subprocess.run([name, "-m", "venv", tmp_path / "venv"], check=True)
    commands = tmp_path / "venv" / "bin"
    install = [commands / "python", "-m", "pip", "install", wheel]
    subprocess.run(install, check=True, capture_output=True)
    return commands


@pytest.fixture
def run(environment, tmp_path):
    """A function: the output of a command in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()

    def run(name, *arguments, **options):
        done = subprocess.run(
            [environment / name, *arguments],
            cwd=folder,
            env=ALONE,
            capture_output=True,
            text=True,
            **options,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.folder = folder
    return run


def test_from_a_table_to_answers(environment, run):
    rows = zip(*dates("train", size=2000), strict=True)
    lines = ["text\tiso\tnote", *(f"{text}\t{iso}\t-" for text, iso in rows)]
    (run.folder / "dates.tsv").write_text("\n".join(lines), "utf-8")
    assert "Training pairs: 1800" in run("kseq", "check", *TRAIN[3:7])

    stop_and_resume(environment, run)
    again = [*TRAIN, "--from", "runs/dates", "--run", "runs/tuned"]
    run("kseq", *again, "--steps=20")

    answer = run("kseq", "predict", "saved_models/dates", input="3 mars 1999\n")
    assert answer.count("\n") == 1
    page = run("kseq", "explain", "runs/tuned", input="3 mars 1999\n")
    assert page.startswith("<!doctype html>")

    [in_python] = re.findall(r"```python\n(import kseq.*?)```", README, re.S)
    assert "[" in run("python", "-c", in_python)
    blocks = re.findall(r"```python\n(.*?)```", SERVING, re.S)
    [without_kseq] = [block for block in blocks if "tf.saved_model" in block]
    run(environment / "pip", *("uninstall", "--yes", "kseq"))
    printed = run("python", "-c", without_kseq)
    assert repr(answer.strip().encode())[1:-1] in printed


def stop_and_resume(environment, run):
    """Trains by one command, which a signal stops in between."""
    process = subprocess.Popen(
        [environment / "kseq", *TRAIN],
        cwd=run.folder,
        env=ALONE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    last = run.folder / "runs/dates/checkpoints/last"
    while process.poll() is None and not any(last.glob("*.sha256")):
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate()
    assert process.returncode == 143, printed
    assert "saved_models/dates/1" in run("kseq", *TRAIN)
