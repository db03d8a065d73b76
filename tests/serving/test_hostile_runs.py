"""Run files that are broken or hostile: one message, and nothing runs."""

import inspect
import json
import os
import re
import shutil
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

import kseq
from kseq.data import Tokenizer
from kseq.layers import LuongAttention
from kseq.loading import load_model
from kseq.loading.described_model import _KINDS, _is_known, described_model
from kseq.models import LSTMSeq2Seq
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import write_checkpoint
from kseq.user_error import UserError
from tests.recipe_models import make_served

BROKEN = [
    *(b"", b"[]", b"null", b'"text"', b"5", b"NaN", b"{", b"\xff\xfe", b"{}"),
    *(b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500),
    *(b'{"other": 1}', b'{"class_name": 5, "config": {}}'),
    *(b'{"class_name": "Transformer", "config": []}',),
    b'{"labels": "abc"}',
    b'{"labels": [1, null]}',
    b'{"labels": ["a"], "preprocessor": {"class": "os.system"}}',
    b'{"max_length": 1e999}',
    b'{"max_length": 9, "training_length": -1}',
    b'{"max_length": 9, "training_length": "9"}',
    b'{"max_length": 9, "length_ratio": "1"}',
    b'{"max_length": 9, "length_ratio": -1.0}',
    b'{"max_length": 9, "length_ratio": NaN}',
    b'{"max_length": 9, "training_length": ' + b"9" * 400 + b"}",
    b'{"max_length": ' + b"9" * 400 + b"}",
    b'{"max_length": 9, "preprocessor": {"class": "TextPreprocessor", '
    b'"max_length": 1e999}}',
    b'{"max_length": 9, "preprocessor": {"class": "TextPreprocessor", '
    b'"max_length": 9}, "search": {"class": "BeamSearch", "beam_size": 0}}',
]


@pytest.fixture(scope="module")
def whole(generators, run_of):
    return run_of(generators["lstm"])


@pytest.fixture(scope="module")
def labels(classifiers, run_of):
    return run_of(classifiers["flat"])


@pytest.fixture(scope="module")
def bits():
    """Of a model that is made in no time."""
    return make_served("learn_algorithms lstm")


@pytest.fixture
def bits_run(bits, run_of):
    return RunDirectory(run_of(bits))


@pytest.fixture
def run(whole, tmp_path):
    return RunDirectory(shutil.copytree(whole, tmp_path / "run"))


def refused(run, path):
    """The one message of a run that cannot be opened, at once."""
    start = time.process_time()  # other processes may have the machine
    with pytest.raises(UserError) as caught:
        kseq.load(run.path)
    assert time.process_time() - start < 5
    message = str(caught.value)
    assert str(path) in message
    assert len(message) < 600
    assert "safe_mode" not in message
    return message


def test_a_layer_in_the_config_of_a_model_is_made_twice():
    """It is no reason to refuse the model, however large the layer is."""
    model = LSTMSeq2Seq(
        *(9, 9),
        embedding_dim=8,
        units=96,
        attention=LuongAttention("general", name="attention"),
    )
    description = keras.saving.serialize_keras_object(model)
    values = [variable.value for variable in model.variables]
    again = described_model(description, "model.json", values)
    assert again.count_params() == model.count_params()


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: repr(text[:30]))
@pytest.mark.parametrize("name", ["task.json", "model.json"])
def test_broken_files(run, name, text):
    (run.path / name).write_bytes(text)
    refused(run, run.path / name)


@pytest.mark.parametrize(
    "text", [*BROKEN[:12], b'{"labels": ["a"]}'], ids=lambda t: repr(t[:30])
)
def test_broken_documents_of_version_0_1(run, text):
    run.task.unlink()
    (run.path / "documents.json").write_bytes(text)
    refused(run, run.path)


def test_a_task_of_another_model(run, labels, tmp_path):
    copy = RunDirectory(shutil.copytree(labels, tmp_path / "labels"))
    shutil.copy(copy.tokenizer("source"), copy.tokenizer("target"))
    tasks = run.task.read_text(), copy.task.read_text()
    run.task.write_text(tasks[1])
    copy.task.write_text(tasks[0])
    assert "has no explain" in refused(run, run.task)
    assert "has no decode_step" in refused(copy, copy.task)


def test_a_directory_in_the_place_of_a_file(run):
    run.model.unlink()
    run.model.mkdir()
    assert "not a run with a model" in refused(run, run.path)


def marked(name, module="builtins", config=None, registered=None):
    return {
        "class_name": name,
        "module": module,
        "config": config or {},
        "registered_name": registered,
    }


LAMBDA = {
    "class_name": "__lambda__",
    "config": {"value": "4wEAAAAA", "defaults": None, "closure": None},
}
CRAFTED = {
    "lambda_layer": marked("Lambda", "keras.layers", {"function": LAMBDA}),
    "lambda": LAMBDA,
    "saved_model": marked("TFSMLayer", "keras.layers", {"filepath": "/tmp"}),
    "vocabulary": marked(
        "StringLookup", "keras.layers", {"vocabulary": "/etc/passwd"}
    ),
    "vectorization": marked(
        "TextVectorization", "keras.layers", {"vocabulary": "/etc/passwd"}
    ),
    "torch": marked("TorchModuleWrapper", "keras.layers"),
    "torch_inside": marked(
        "TorchModuleWrapper",
        "keras.src.utils.torch_utils",
        registered="TorchModuleWrapper",
    ),
    "module": marked("Popen", "subprocess", {"args": ["true"]}),
    "function": marked("function", "os", "system", "system"),
    "builtins": marked("function", "builtins", "eval", "eval"),
    "builtin_class": marked("function", "builtins", "exit"),
    "unknown": marked("Unknown", "kseq.models", {}, "kseq>Unknown"),
    "unregistered": marked("RunDirectory", "kseq.runs", {"path": "/tmp"}),
    "get_file": marked("get_file", "keras.utils", {"origin": "file:///etc"}),
    "load_model": marked("load_model", "keras.models", {"filepath": "/tmp"}),
    "callback": marked("CSVLogger", "keras.callbacks", {"filename": "/tmp/x"}),
    "typespec": {"class_name": "__typespec__", "config": {}, "spec_name": "x"},
    "no_string": {"class_name": ["Lambda"], "config": {}},
}


@pytest.mark.parametrize("crafted", CRAFTED.values(), ids=CRAFTED)
@pytest.mark.parametrize("place", ["attention", "units", None])
def test_no_other_class_is_made(run, crafted, place):
    description = json.loads(run.model.read_text())
    if place is None:
        description = crafted
    else:
        description["config"][place] = {"nested": [crafted]}
    run.model.write_text(json.dumps(description))
    message = refused(run, run.model)
    if isinstance(crafted["class_name"], str) and (
        isinstance(description["config"], dict)
    ):
        assert crafted["class_name"] in message


def test_no_class_of_keras_reads_what_its_config_names():
    """Those that take a path, a vocabulary or a program are not made."""
    wrong = re.compile("path|file|vocab|^(url|origin|module|function|.*_fn)$")
    classes = [*_KINDS]
    for found in classes:
        classes += found.__subclasses__()
    classes = [c for c in classes if c.__module__.startswith("keras.")]
    assert len(classes) > 400
    made = {
        found.__name__
        for found in classes
        if any(map(wrong.search, inspect.signature(found.__init__).parameters))
        and _is_known(marked(found.__name__, found.__module__))
    }
    # Of a function in this process; a rate of dropping; a number of paths.
    assert made <= {"VectorizedMap", "StochasticDepth", "CTCDecode"}


@pytest.mark.parametrize(
    "changes",
    [
        {"units": 1_000_000},
        {"embedding_dim": 10**12},
        {"source_vocab_size": 10**9},
        {"source_vocab_size": 299},
        {"units": 9},
        {"num_encoder_layers": 10**9},
        {"num_decoder_layers": 10**18},
        {"num_decoder_layers": 2},
        {"units": -1},
        {"units": 0},
        {"units": 10**400},
        {"units": "8"},
        {"units": None},
        {"units": float("nan")},
        {"units": float("inf")},
        {"units": [8]},
        {"dropout": 5.0},
        {"cell": "os.system"},
        {"attention": None},
        {"dtype": {"class_name": "x"}, "units": 9},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_model_with_other_weights_is_refused(run, changes):
    """At once, and nothing is allocated for it."""
    description = json.loads(run.model.read_text())
    description["config"] |= changes
    run.model.write_text(json.dumps(description))
    assert "they" in refused(run, run.path) or "not" in refused(run, run.path)


def test_weights_that_do_not_fit(run, generators):
    model = generators["lstm"].model
    last = run.checkpoints / "last"
    values = [tf.Variable(v) for v in model.variables]
    write_checkpoint(last, 2, 1, vars=values[:-1])
    message = refused(run, last / "ckpt-2")
    assert f"{len(values) - 1} variables" in message

    wrong = [tf.Variable(tf.zeros((3, 2))), *values[1:]]
    write_checkpoint(last, 3, 1, vars=wrong)
    message = refused(run, last / "ckpt-3")
    assert "(3, 2)" in message
    assert model.variables[0].path in message
    text = [tf.Variable(tf.fill(values[0].shape, "x")), *values[1:]]
    write_checkpoint(last, 4, 1, vars=text)
    assert "string" in refused(run, last / "ckpt-4")
    write_checkpoint(last, 5, 1, other=tf.Variable(1.0))
    refused(run, run.path)


@pytest.mark.parametrize("name", ["source", "target"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"garbage " * 100, b"\x0a\x05abc", None],
    ids=["empty", "zeros", "garbage", "short", "missing"],
)
def test_a_broken_tokenizer(run, name, content):
    path = run.tokenizer(name)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    refused(run, path)


def test_a_tokenizer_of_another_model(run, labels, tmp_path):
    other = Tokenizer.train(["a rose is a rose"], 270).model
    run.tokenizer("target").write_bytes(other)
    message = refused(run, run.tokenizer("target"))
    assert "has 270 pieces" in message
    assert str(run.model) in message
    assert "target_vocab_size=" in message

    copy = RunDirectory(shutil.copytree(labels, tmp_path / "labels"))
    copy.tokenizer("source").write_bytes(other)
    assert "vocab_size=400" in refused(copy, copy.tokenizer("source"))


def test_the_average_is_of_the_last_training(bits_run, bits, capsys):
    """One that is older than the best weights since is passed over."""
    run, variables = bits_run, bits.model.variables
    values = [tf.Variable(v) for v in variables]
    values[0].assign(values[0] + 1)

    def used():
        found = load_model(run).variables[0].numpy()
        return "average" if np.allclose(found, values[0]) else "other"

    write_checkpoint(run.checkpoints / "average", 1, 1, vars=values)
    assert used() == "average"
    write_checkpoint(run.checkpoints / "last", 2, 2, vars=variables)
    assert used() == "other"
    write_checkpoint(run.checkpoints / "best", 1, 1, vars=variables)
    assert capsys.readouterr().err.count("\n") == 1
    assert used() == "average"
    write_checkpoint(run.checkpoints / "best", 2, 1, vars=variables)
    assert capsys.readouterr().err == ""
    assert used() == "other"
    [line] = capsys.readouterr().err.splitlines()
    assert "'best' of step 2 is used" in line
    assert "trained further after its average of step 1" in line
    found = load_model(run, weights="average").variables[0].numpy()
    np.testing.assert_array_equal(found, values[0])


def test_a_broken_checkpoint_is_named_with_the_one_that_is_used(
    bits_run, bits, caplog
):
    variables = bits.model.variables
    last = bits_run.checkpoints / "last"
    write_checkpoint(last, 2, 2, vars=variables)
    os.truncate(last / "ckpt-2.data-00000-of-00001", 9)
    bits_run.readme.write_text("# bits\n\n## Use\n")
    served = kseq.loading.load_run(bits_run)
    assert "Those of step 1, the last" in served.model_card
    skipped, used = caplog.messages
    assert skipped.startswith(f"Skipped: {last / 'ckpt-2'} is broken")
    assert used == f"{last / 'ckpt-1'} is used instead."

    write_checkpoint(bits_run.checkpoints / "best", 2, 1, vars=variables)
    os.truncate(bits_run.checkpoints / "best" / "ckpt-2.index", 9)
    with pytest.raises(RunError) as caught:
        kseq.load(bits_run.path)
    assert str(caught.value) == (
        f"{bits_run.path} has no intact checkpoint 'best'. Intact: 'last' of "
        "step 1."
    )
    shutil.rmtree(last)
    with pytest.raises(RunError, match=r"no intact checkpoint 'best'\.$"):
        kseq.load(bits_run.path)


def test_nothing_is_a_path():
    for path in ("", "a\0b"):
        with pytest.raises(UserError, match="Expected the path of a run"):
            kseq.load(path)
        with pytest.raises(RunError, match="Expected the path of a run"):
            load_model(path)
