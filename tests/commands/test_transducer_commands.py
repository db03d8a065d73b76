"""Commands on models that answer with bits."""

import json

import keras
import numpy as np
import pytest

from kseq import cli, serving
from kseq.data import VectorPreprocessor
from kseq.data.files.text_files import LONGEST_LINE
from kseq.layers import NeuralTuringMachine
from kseq.models import BinaryRNN
from tests.commands.saved_run import saved_run

pytestmark = pytest.mark.slow  # as those of a translator

SEQUENCES = ["[[1, 0, 1]]", " ", "[[1e0, -0.5, true], [0, 0, 0]]\r", "[]"]
TEXT = "\n".join(SEQUENCES).encode()


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    def make_run(name, cell):
        keras.utils.set_random_seed(1)
        model = BinaryRNN(3, 2, cell)
        for weight in model.trainable_variables:
            weight.assign(keras.random.normal(weight.shape))
        served = serving.Transducer(model, VectorPreprocessor(3))
        return saved_run(served, tmp_path_factory.mktemp("runs") / name)

    return make_run


@pytest.fixture(scope="module")
def run(make_run):
    sizes = {"slots": 6, "slot_dim": 4, "controller_units": 5}
    return make_run("bits", NeuralTuringMachine(4, **sizes))


@pytest.fixture(scope="module")
def without_memory(make_run):
    return make_run("lstm", keras.layers.LSTMCell(4))


@pytest.fixture(scope="module")
def export(run):
    path = run.parent / "saved_models"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


def test_bits_for_each_line(run, export, predict):
    found, notes = predict(run, TEXT)
    assert notes == ""
    bits = [json.loads(line) for line in found]
    assert [np.shape(each) for each in bits] == [(1, 2), (0,), (2, 2), (0,)]
    assert {*np.ravel(bits[2])} <= {0, 1}
    assert predict(export, TEXT)[0] == found
    scored, _ = predict(run, TEXT, "--scores")
    scores, texts = zip(*(line.split("\t") for line in scored), strict=True)
    assert [*texts] == found
    assert [float(score) < 0 for score in scores] == [True, False, True, False]


def test_json_with_attention(run, export, predict):
    for path in (run, export):
        lines, _ = predict(path, TEXT, "--json", "--attention")
        first, blank, longer, _ = map(json.loads, lines)
        assert np.shape(first["probabilities"]) == np.shape(first["bits"])
        assert np.shape(longer["memory"]["read_weights"]) == (2, 1, 6)
        assert blank["bits"] == blank["memory"]["write_weights"] == []


def test_an_explanation_is_a_page(run, export, call):
    for path in (run, export):
        page, notes = call("explain", path, text=TEXT)
        assert page.startswith("<!doctype html>")
        assert page.count('<img src="data:image/png;base64,') == 2
        assert page.count("<article") == 4
        assert notes == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[[1, 0", "expected a JSON array of arrays of numbers; found '[[1,"),
        (b"one two", "expected a JSON array of arrays"),
        (b"\xff", "expected a JSON array of arrays"),
        (b"[" * 60_000, "expected a JSON array of arrays"),
        (b'{"a": 1}', "not an array of numbers"),
        (b'[["1", "0", "1"]]', "not an array of numbers"),
        (b"[[1, 0, null]]", "not an array of numbers"),
        (b"[[1, 0]]", "vectors of 3 numbers; found the shape (1, 2)"),
        (b"[1, 0, 1]", "found the shape (3,)"),
        (b"5", "found the shape ()"),
        (b"[[1, 0, NaN]]", "expected finite numbers"),
        (b"[[1, 0, 1e999]]", "expected finite numbers"),
        (b"[[1, 0, 1e99]]", "expected finite numbers"),
        (b"[" + b"[1, 0, 1]," * 9_999, f"at most {LONGEST_LINE} bytes"),
    ],
)
def test_a_wrong_line_is_one_message(run, predict, line, message):
    _, notes = predict(run, b"[[1, 0, 1]]\n\n" + line, code=2)
    assert notes.startswith("kseq predict: line 3: expected ")
    assert message in notes
    assert notes.count("\n") == 1


def test_a_wrong_line_of_an_explanation(export, call):
    output, notes = call("explain", export, text=b"[]\n[[1]]\n", code=2)
    assert output == ""
    assert notes.startswith("kseq explain: line 2: expected vectors of 3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--n-best", "2"), "--n-best needs a signature n_best"),
        (("--greedy",), "returns bits; a search is only for models"),
        (("--beam-size", "2"), "returns bits; a search is only for models"),
        (("--prefix", "FILE"), "--prefix needs a signature prefix"),
        (("--features", "FILE"), "takes sequences of vectors"),
    ],
)
def test_options_of_other_models(run, refused, tmp_path, options, message):
    path = tmp_path / "file"
    path.write_text("a")
    options = [path if word == "FILE" else word for word in options]
    assert message in refused("predict", run, *options)


def test_commands_of_other_models(run, refused, tmp_path):
    path = tmp_path / "file"
    path.write_text("a")
    assert "evaluate does not read" in refused("evaluate", run, path, path)
    assert "score needs a signature" in refused("score", run, path, path)
    assert "chat needs a dialogue model" in refused("chat", run)
    assert "--images is for" in refused("explain", run, "--images", tmp_path)


def test_no_memory_to_explain(without_memory, predict, call):
    found, _ = predict(without_memory, TEXT)
    assert len(found) == 4
    for command in (("explain",), ("predict", "--json", "--attention")):
        output, notes = call(*command, without_memory, text=TEXT, code=2)
        assert output == ""
        assert "no memory to show" in notes
        assert notes.count("\n") == 1


def test_inspecting(run, export, call):
    facts, _ = call("inspect", run)
    assert "BinaryRNN" in facts
    assert "VectorPreprocessor(num_features=3)" in facts
    facts, _ = call("inspect", export)
    assert "vectors float32(None, None, 3) -> probabilities" in facts
