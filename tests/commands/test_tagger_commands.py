"""Commands on models that tag words."""

import json

import keras
import pytest

from kseq import cli, serving
from kseq.data import Tokenizer, WordPreprocessor
from kseq.data.files.text_files import LONGEST_LINE
from kseq.data.tags.journeys import journeys
from kseq.models import LSTMTagger
from tests.commands.saved_run import saved_run

pytestmark = pytest.mark.slow  # test_recipes.py runs them

LINES = ["from Oslo to  New York", "", " Straße\u00a0über\t😀 ", "to"]
TEXT = "\n".join(LINES).encode()
TAGS = ("B-x", "I-x", "O")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    keras.utils.set_random_seed(1)
    tokenizer = Tokenizer.train(journeys("train", size=200).texts, 330)
    model = LSTMTagger(330, 3, embedding_dim=4, units=4, num_layers=1)
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    served = serving.Tagger(model, WordPreprocessor(tokenizer), TAGS)
    return saved_run(served, tmp_path_factory.mktemp("runs") / "tags")


@pytest.fixture(scope="module")
def export(run):
    path = run.parent / "saved_models"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


@pytest.fixture
def file(tmp_path):
    def file(text, name="test.conll"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return file


def test_a_tag_for_each_word(run, export, predict):
    found, notes = predict(run, TEXT)
    assert notes == ""
    assert [len(line.split(" ")) if line else 0 for line in found] == [
        len(line.encode().split()) for line in LINES
    ]
    assert {tag for line in found for tag in line.split()} <= {*TAGS}
    assert predict(export, TEXT)[0] == found
    scored, _ = predict(run, TEXT, "--scores")
    scores, texts = zip(*(line.split("\t") for line in scored), strict=True)
    assert [*texts] == found
    assert float(scores[0]) < float(scores[3]) < 0 == float(scores[1])


def test_json(run, export, predict):
    found, _ = predict(run, TEXT)
    for path in (run, export):
        lines, _ = predict(path, TEXT, "--json")
        records = [json.loads(line) for line in lines]
        assert [" ".join(record["tags"]) for record in records] == found
        assert records[2]["words"] == ["Straße\u00a0über", "😀"]
        assert all(0 < p <= 1 for p in records[0]["probabilities"])


def test_a_line_that_is_too_long(run, predict):
    """It has the tags of its beginning, and is reported."""
    found, notes = predict(run, b"a " * 501 + b"\nb\n" + b"a" * 70_000)
    assert [len(line.split(" ")) for line in found] == [500, 1, 1]
    assert notes.splitlines() == [
        "line 1 is too long; its end was left out.",
        "line 3 is too long; its end was left out.",
    ]
    assert LONGEST_LINE < 70_000


def test_evaluating(run, export, predict, call, file):
    [tags], _ = predict(run, b"from Oslo to New York")
    words = ["from", "Oslo", "to", "New", "York"]
    pairs = zip(words, tags.split(), strict=True)
    path = file("".join(f"{word}\t{tag}\n" for word, tag in pairs))
    swapped = file(f"{tags}\tx\tfrom Oslo to New York\n", "other.tsv")
    for model in (run, export):
        scores, notes = call("evaluate", model, path)
        assert notes == ""
        assert "accuracy 100.00 %\n" in scores
        assert "exact match 100.00 %\n" in scores
        assert "span F1 " in scores
        again, _ = call("evaluate", model, swapped, "--columns", "3", "1")
        assert again == scores


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb\tZ\n", "tags that the model does not know: Z"),
        ("a\tO\nb\n", ":2: expected 2 columns; found 1"),
        ("", "is empty"),
    ],
)
def test_what_cannot_be_evaluated(run, refused, file, text, message):
    found = refused("evaluate", run, file(text))
    assert message in found
    assert found.count("\n") == 1


def test_counts_of_sentences(refused, file):
    path = file("a b\tO O\na\tO B-x\n", "test.tsv")
    message = f"{path}:2: expected one tag for each word; found 1 words and 2"
    assert message in refused("check", "--tags", path)


def test_checking_files(call, file):
    rows = "".join(f"w{n}\t{'OX'[n % 2]}\n\n" for n in range(20))
    found, notes = call("check", "--tags", file(rows))
    assert notes == ""
    assert "Training sentences: 18, 18 words" in found
    assert "Tags: 2\n" in found
    other = file("w1\tX\n", "val.conll")
    found, _ = call("check", "--tags", file(rows), "--validation", other)
    assert "1 of 1 validation sentences are also in training" in found


def test_checking_wrong_files(refused, file):
    path, other = file("a\tX\n\nb\tO\n"), file("c\tZ\n", "val.conll")
    for arguments, message in (
        ((path, "--validation", other), "has tags that"),
        ((path, "--documents"), "mutually exclusive"),
        ((path, other), "takes one file"),
        ((path, "--columns", "1"), "2 columns here; found 1"),
        ((path, "--columns", "1", "9"), "the columns '1' and '9'"),
        ((path, "--columns", "1", "1"), "two different names or numbers"),
        (("missing",), "There is no file 'missing'"),
    ):
        assert message in refused("check", "--tags", *arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--n-best", "2"), "--n-best needs a signature n_best"),
        (("--greedy",), "returns tags; a search is only for models"),
        (("--beam-size", "2"), "returns tags; a search is only for models"),
        (("--prefix", "FILE"), "--prefix needs a signature prefix"),
        (("--features", "FILE"), "takes text"),
        (("--json", "--attention"), "--attention needs a signature explain"),
    ],
)
def test_options_of_other_models(run, refused, file, options, message):
    options = [file("a") if word == "FILE" else word for word in options]
    assert message in refused("predict", run, *options)


def test_commands_of_other_models(run, export, refused, file):
    path = file("a\tO\n")
    for model in (run, export):
        assert "needs a signature explain" in refused("explain", model)
        assert "score needs a signature" in refused("score", model, path, path)
        assert "chat needs a dialogue model" in refused("chat", model)
        assert "one file of sentences" in refused("evaluate", model, path, path)
        for option in ("--images", "--audio"):
            found = refused("evaluate", model, path, option, path.parent)
            assert "takes text" in found


def test_inspecting(run, export, call):
    facts, _ = call("inspect", run)
    assert "LSTMTagger" in facts
    assert "'B-x', 'I-x', 'O'" in facts
    facts, _ = call("inspect", export)
    assert "text string(None,) -> probabilities float32" in facts
    assert "tagset" in facts
