import fcntl
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

import kseq
from kseq.answers import types_of_task
from kseq.files.model_path import model_path
from kseq.loading import load_export
from kseq.runs import DiskError, RunDirectory, RunError
from kseq.runs.exports import check_exports
from kseq.serving import export
from kseq.user_error import UserError

ROOT = Path(kseq.__file__).parents[1]
EXPORTER = """
    import sys
    from kseq.data import TextPreprocessor, Tokenizer
    from kseq.decoding import GreedySearch
    from kseq.models import LSTMSeq2Seq
    from kseq.serving import Generator, export

    tokenizer = Tokenizer.train(["the cat sat on the mat"] * 3, 20, "char")
    model = LSTMSeq2Seq(
        source_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        embedding_dim=4,
        units=4,
        attention=None,
    )
    preprocessor = TextPreprocessor(tokenizer)
    generator = Generator(model, preprocessor, tokenizer, GreedySearch())
    while True:
        export(generator, sys.argv[1])
    """


def test_graph_has_no_python_and_no_files(exported):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((exported / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    nodes = [
        *graph.node,
        *(node for f in graph.library.function for node in f.node_def),
    ]
    forbidden = re.compile("PyFunc|ReadFile|WriteFile")
    assert not [node.op for node in nodes if forbidden.search(node.op)]


def test_describes_itself(generator, exported):
    description = exported / "assets.extra" / "kseq.json"
    assert json.loads(description.read_text()) == {
        "versions": {
            "kseq": kseq.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
        "preprocessor": {"class": "TextPreprocessor", "max_length": 32},
        "search": {
            "class": "BeamSearch",
            "beam_size": 4,
            "length_penalty": 1.0,
            "penalty_offset": 5.0,
            "ctc_weight": 0.0,
            "patience": None,
            "constraints": [],
        },
        "max_length": 32,
        "training_length": 0,
        "vocab_sizes": {
            "source": 300,
            "target": generator.tokenizer.vocab_size,
        },
        "parameters": generator.model.count_params(),
    }


@pytest.mark.slow
def test_killed_while_exporting(tmp_path, seed):
    exporter = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(EXPORTER), tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "1").exists():
        assert exporter.poll() is None
        time.sleep(0.01)
    time.sleep(random.random())
    exporter.send_signal(signal.SIGKILL)
    exporter.wait()

    def content(version):
        files = version.rglob("*")
        return {(file.relative_to(version), file.is_dir()) for file in files}

    versions = [path for path in tmp_path.iterdir() if path.name.isdecimal()]
    for version in versions:
        assert content(version) == content(tmp_path / "1")
    assert model_path(tmp_path).name == str(len(versions))
    assert len(load_export(tmp_path)(["a cat"])) == 1


@pytest.fixture
def failure():
    """What the next export raises, if anything."""
    return []


@pytest.fixture
def quick_save(monkeypatch, failure):
    """Makes an export a matter of milliseconds."""

    def save(module, path, signatures):
        Path(path).mkdir()
        Path(path, "saved_model.pb").write_text("")
        if failure:
            raise failure[0]

    monkeypatch.setattr(tf.saved_model, "save", save)


def test_versions_are_never_reused(generator, tmp_path, quick_save):
    (tmp_path / "7").mkdir()
    assert export(generator, tmp_path) == tmp_path / "8"
    shutil.rmtree(tmp_path / "8")
    assert export(generator, tmp_path) == tmp_path / "9"


def test_numbers_that_cannot_be_followed(generator, tmp_path, quick_save):
    """Of more digits than TensorFlow Serving reads, and the last one."""
    for name in ("99999999999999999999999", "٣٣", "003"):
        (tmp_path / name).mkdir()
    assert export(generator, tmp_path) == tmp_path / "4"
    (tmp_path / f"{2**63 - 2}").mkdir()
    assert export(generator, tmp_path) == tmp_path / f"{2**63 - 1}"
    with pytest.raises(UserError, match="which no version can follow"):
        export(generator, tmp_path)
    assert not [*tmp_path.glob(".*.writing"), *tmp_path.glob(".*.partial")]


def test_carries_the_readme_of_its_run(generator, tmp_path, quick_save):
    readme = "assets.extra/README.md"
    assert not (export(generator, tmp_path) / readme).exists()
    served = generator.with_search(generator.search)
    served.model_card = "# Größe\n"
    served = served.with_search(served.search)
    card = (export(served, tmp_path) / readme).read_text("utf-8")
    assert card == "# Größe\n"


def test_operations_of_the_user_are_named(
    generator, tmp_path, monkeypatch, caplog
):
    def save(module, path, signatures):
        saved = saved_model_pb2.SavedModel()
        nodes = saved.meta_graphs.add().graph_def.node
        for op in ("StringUpper", "Identity", "StringLower"):
            nodes.add(name=op, op=op)
        Path(path).mkdir()
        serialized = saved.SerializeToString()
        Path(path, "saved_model.pb").write_bytes(serialized)

    monkeypatch.setattr(tf.saved_model, "save", save)
    path = export(generator, tmp_path)
    [line] = caplog.messages
    assert str(path) in line
    assert line.endswith("--allow-op StringLower --allow-op StringUpper")


def test_the_readme_names_the_signatures(generators, classifiers, retriever):
    for served in (retriever, *generators.values(), *classifiers.values()):
        source, answer = types_of_task(served.get_config())
        assert served.signatures.keys() == answer.signatures(source).keys()


def test_weights_that_are_no_numbers_are_not_exported(generators, tmp_path):
    generator = generators["lstm"]
    weight = generator.model.trainable_variables[-1]
    values = weight.numpy()
    weight.assign(values * np.nan)
    with pytest.raises(UserError, match="The model has weights that are NaN"):
        export(generator, tmp_path / "model")
    weight.assign(values)
    assert not (tmp_path / "model").exists()


def test_exports_at_once(generator, tmp_path, quick_save):
    with ThreadPoolExecutor(8) as pool:
        paths = pool.map(lambda _: export(generator, tmp_path), range(24))
        assert {path.name for path in paths} == {str(n) for n in range(1, 25)}


def test_failed_export_leaves_nothing(
    generator, tmp_path, quick_save, monkeypatch
):
    def no_space(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(DiskError, match="No space"):
        export(generator, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".versions"]


FULL = tf.errors.ResourceExhaustedError(None, None, "No space left; a\nb")


@pytest.mark.parametrize(
    ("error", "raised", "code"),
    [
        (FULL, DiskError, 4),
        (tf.errors.UnknownError(None, None, "disk quota"), DiskError, 4),
        (OSError(28, "No space left on device"), DiskError, 4),
        (OSError(122, "Disk quota exceeded"), DiskError, 4),
        (OSError(13, "Permission denied"), UserError, 2),
        (OSError(30, "Read-only file system"), UserError, 2),
    ],
    ids=str,
)
def test_a_disk_that_cannot_be_written_is_one_message(
    generator, tmp_path, quick_save, failure, error, raised, code
):
    """The versions before stay, and the next export is the next number."""
    assert export(generator, tmp_path).name == "1"
    failure.append(error)
    with pytest.raises(raised) as caught:
        export(generator, tmp_path)
    assert caught.value.exit_code == code
    [line] = str(caught.value).splitlines()
    assert str(tmp_path) in line
    failure.clear()
    assert export(generator, tmp_path).name == "3"
    assert {path.name for path in tmp_path.iterdir()} == {".versions", "1", "3"}


def test_a_full_disk(generator, tmp_path):
    """No file can become larger than 500 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(DiskError, match=f"{tmp_path} could not be written"):
            export(generator, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == [".versions"]


@pytest.mark.parametrize("error", [SystemExit(143), KeyboardInterrupt()])
def test_a_stopped_export_leaves_nothing(
    generator, tmp_path, quick_save, failure, error
):
    """By SIGTERM, as recipes answer it, or by Ctrl-C."""
    failure.append(error)
    with pytest.raises(type(error)):
        export(generator, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".versions"]
    failure.clear()
    assert export(generator, tmp_path).name == "2"


def test_what_a_killed_export_left_goes_with_the_next(
    generator, tmp_path, quick_save
):
    """But not what a living one writes."""
    for name in (".1.partial", ".2.partial", ".3.partial"):
        (tmp_path / name / "variables").mkdir(parents=True)
    for name in (".2.writing", ".4.writing"):
        (tmp_path / name).touch()
    with open(tmp_path / ".3.writing", "w") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        (tmp_path / ".versions").write_text("1\n2\n3\n4\n")
        assert export(generator, tmp_path).name == "5"
        assert {path.name for path in tmp_path.iterdir()} == {
            *(".versions", "5", ".3.partial", ".3.writing")
        }
    assert export(generator, tmp_path).name == "6"
    assert {path.name for path in tmp_path.iterdir()} == {".versions", "5", "6"}


def test_two_runs_of_one_name(generators, tmp_path, quick_save):
    """They do not share a folder; a run that is overwritten is the same."""
    generator = generators["lstm"]
    folder = tmp_path / "saved_models" / "x"
    run, other = (RunDirectory(tmp_path / path) for path in ("a/x", "b/x"))
    assert export(generator, folder, run).name == "1"
    again = RunDirectory(tmp_path / "a" / ".." / "a" / "x")
    assert export(generator, folder, again).name == "2"
    for call in (
        lambda: export(generator, folder, other),
        lambda: check_exports(folder, other.path),
    ):
        with pytest.raises(RunError) as caught:
            call()
        for part in (folder, run.path, other.path, "--to", folder / ".run"):
            assert str(part) in str(caught.value)
    assert export(generator, tmp_path / "y", other).name == "1"
    assert model_path(folder).name == "2"

    for path in ("a", "moved"):
        (tmp_path / path).mkdir()
    for path in ("saved_models", "a"):
        (tmp_path / path).rename(tmp_path / "moved" / path)
    moved = tmp_path / "moved" / "saved_models" / "x"
    run = RunDirectory(tmp_path / "moved" / "a" / "x")
    assert export(generator, moved, run).name == "3"
    (moved / ".run").unlink()  # of version 0.1, or as the message says
    assert export(generator, moved, other).name == "4"
    # A path may be of any bytes but NUL.
    for written, message in (
        (b"a\0b", "is broken"),
        (b"\xff", "different run"),
    ):
        (moved / ".run").write_bytes(written)
        with pytest.raises(RunError, match=message):
            check_exports(moved, run.path)


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    run = tmp_path / "run"
    check_exports(tmp_path / "a" / "b", run)
    (tmp_path / "file").write_text("")
    for path in ("file", "file/x", "file/x/y"):
        with pytest.raises(RunError, match="file is not a directory"):
            check_exports(tmp_path / path, run)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(RunError, match="is not writable"):
        check_exports(tmp_path / "a" / "b", run)
