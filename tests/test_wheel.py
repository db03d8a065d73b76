"""The wheel in a fresh environment of each Python, as a user installs it."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from kseq.data import dates

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
    python = interpreter(request.param)
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    commands = tmp_path / "venv" / "bin"
    install = [commands / "python", "-m", "pip", "install", f"{wheel}[serve]"]
    subprocess.run(install, check=True, capture_output=True)
    return commands


def test_trains_beside_jax(wheel, tmp_path):
    """Keras imports it where it is installed, and so do others of TensorFlow's.

    The newest one that Python 3.12 gets; `--upgrade` would change TensorFlow.
    """
    python = interpreter("3.12")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    commands = tmp_path / "venv" / "bin"
    install = [commands / "python", "-m", "pip", "install", wheel, "jax>=0.11"]
    subprocess.run(install, check=True, capture_output=True)
    words = (
        *("train", "translate_lstm", "--steps=2", "--evaluate-every=2"),
        *("--vocab-size=600", "--embedding-dim=8", "--units=8"),
    )
    done = subprocess.run(
        [commands / "kseq", *words],
        cwd=tmp_path,
        env=ALONE,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "saved_models/dates/1/saved_model.pb").is_file()


def interpreter(version):
    """The path of a Python that has `venv`; skips where there is none.

    Version managers put commands on the PATH that only report that their
    version is not installed or not chosen.
    """
    name = f"python{version}"
    wanted = f"import sys, ensurepip; sys.exit(sys.version[:4] != '{version}')"
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name}")
    tried = subprocess.run([path, "-c", wanted], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"{path} does not run: {tried.stderr.strip()[-200:]}")
    return path


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
    serve_and_stop(environment, run, answer.strip())
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


def serve_and_stop(environment, run, answer):
    """Serves by the line of the README, asks by its curl, stops by SIGTERM."""
    [line] = re.findall(r"^    (kseq serve saved_models) ", README, re.M)
    [(body, port, path)] = re.findall(
        r"curl -d '(.*)' \\\n +http://localhost:(\d+)(/\S+)", README
    )
    _, *words = shlex.split(line)
    process = subprocess.Popen(
        [environment / "kseq", *words, "--port", "0"],
        cwd=run.folder,
        env=ALONE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        printed = ""
        while not (found := re.search(r"127\.0\.0\.1:(\d+)/", printed)):
            line = process.stderr.readline()
            assert line, printed
            printed += line
        assert port == "8501", "the default"
        url = f"http://localhost:{found[1]}{path}"
        with urllib.request.urlopen(url, body.encode(), timeout=60) as answered:
            [first, _] = json.load(answered)["predictions"]
        assert first["text"] == answer
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
        assert process.returncode == 0, printed + rest
    finally:
        process.kill()
