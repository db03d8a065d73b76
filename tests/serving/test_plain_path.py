"""A path is never a pattern, and need not be text."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kseq.files.literal_path import literal_path
from kseq.loading.load_export import load_signatures, read_meta_graph
from kseq.runs import RunDirectory
from kseq.runs.checkpoint_files import (
    read_newest,
    write_checkpoint,
)
from kseq.runs.exports import check_exports, claim_exports
from kseq.serving.saved_model import export
from kseq.training.event_files import close_event_files, event_writer
from kseq.user_error import UserError
from tests.recipe_models import make_served
from tests.training.tiny_training import train

NAMES = {
    "brackets": "lr[0.1]",
    "range": "[a-z]",
    "negated": "[!x]",
    "open": "a[",
    "star": "a*",
    "question": "a?",
    "braces": "{a,b}",
    "backslash": "a\\b\\[",
    "shell": "~ $HOME;#&%41'\"",
    "lines": "a\nb\tc",
    "dash": "-a",
    "bytes": os.fsdecode(b"a\xff[b]"),
    "composed": "\xe9",
    "decomposed": "e\u0301",
    "long": "[" + "x" * 250,
}


@pytest.fixture(params=NAMES)
def folder(request, tmp_path):
    # What it would match as a pattern.
    for other in ("lr0", "lr.", "a", "ab", "b", "x"):
        (tmp_path / other).mkdir()
    return tmp_path / NAMES[request.param]


def test_a_checkpoint_is_read_again(folder):
    write_checkpoint(folder, 3, 1, value=tf.Variable(7.0))
    _, tensors = read_newest(folder)
    assert float(tensors["value"]) == 7.0


def test_events_are_written(folder):
    run = RunDirectory(folder)
    with event_writer(run, "train").as_default(step=1):
        tf.summary.scalar("loss", 1.0)
    close_event_files(run)
    assert len(list((run.tensorboard / "train").iterdir())) == 1


def test_an_export_is_loaded(folder, saved):
    shutil.copytree(saved, folder)
    signatures = load_signatures(folder, read_meta_graph(folder))
    text = signatures["serving_default"](text=tf.constant("a"))
    assert text["text"].numpy() == b"ab"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An export with a variable, which is what is found as a pattern."""
    module = tf.Module()
    module.end = tf.Variable("b")

    @tf.function(input_signature=[tf.TensorSpec((), tf.string, "text")])
    def add(text):
        return {"text": text + module.end}

    path = tmp_path_factory.mktemp("exports") / "1"
    tf.saved_model.save(module, str(path), {"serving_default": add})
    return path


def test_a_run_resumes(tmp_path):
    path = tmp_path / NAMES["bytes"]
    train(path, epochs=1)
    train(path, epochs=2)
    _, tensors = read_newest(path / "checkpoints" / "last")
    assert tensors["stream_position"] == 10


def test_a_model_is_exported(tmp_path):
    served = make_served("learn_algorithms lstm")  # it is traced soonest
    version = export(served, tmp_path / NAMES["bytes"])
    vectors = tf.ones((2, 4, 3))
    found, expected = (
        signatures["serving_default"](vectors=vectors)["probabilities"]
        for signatures in (
            load_signatures(version, read_meta_graph(version)),
            served.signatures,
        )
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_folder_of_exports_knows_its_run(folder, tmp_path):
    (tmp_path / "exports").mkdir()
    claim_exports(tmp_path / "exports", folder)
    check_exports(tmp_path / "exports", folder)
    with pytest.raises(UserError, match="a different run"):
        check_exports(tmp_path / "exports", tmp_path / "other")


def test_an_ordinary_path_is_itself(tmp_path):
    with literal_path(tmp_path) as path:
        assert path == tmp_path


@pytest.mark.parametrize("temporary", ["temp[1]", "temp"])
def test_the_link_is_plain_and_is_deleted(tmp_path, monkeypatch, temporary):
    (tmp_path / temporary).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / temporary))
    folder = tmp_path / "a[1]"
    folder.mkdir()
    with literal_path(folder) as path:
        assert path.samefile(folder)
        assert "[" not in str(path)
    assert not os.path.lexists(path) and folder.is_dir()


def test_without_a_link_the_path_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with (
        pytest.raises(UserError, match=r"a\[1\]: TensorFlow reads .* pattern"),
        literal_path(Path(tmp_path, "a[1]")),
    ):
        pass
