"""Commands on models that go on writing."""

import json

import keras
import pytest

from kseq import cli, data, decoding, models, serving
from tests.commands.saved_run import saved_run

pytestmark = pytest.mark.slow  # as those of a translator

TEXT = "a rose is\na rose is a rose\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    keras.utils.set_random_seed(3)
    tokenizer = data.Tokenizer.train([TEXT], 99, "char", verbatim=True)
    model = models.LSTMLM(
        tokenizer.vocab_size,
        num_layers=1,
        embedding_dim=4,
        units=5,
        max_length=8,
    )
    for weight in model.trainable_variables:
        weight.assign(3 * keras.random.normal(weight.shape))
    served = serving.Generator(
        model,
        data.PromptPreprocessor(tokenizer, 8),
        tokenizer,
        decoding.Sampling(length_penalty=0.0),
        max_length=9,
    )
    return saved_run(served, tmp_path_factory.mktemp("runs") / "text")


@pytest.fixture(scope="module")
def export(run):
    path = run.parent / "saved_models"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


@pytest.fixture
def writer(run, load):
    return load(run)


@pytest.fixture
def files(tmp_path):
    """Lines, targets, a text and a table."""
    names = "lines", "targets", "text.txt", "table.csv"
    contents = "a rose \n\n is", "is\na\n ", TEXT, f'n,body\n1,"{TEXT}"\n'
    paths = [tmp_path / name for name in names]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    return paths


def test_predict_continues_each_line(run, export, writer, files, predict):
    """Spaces at the ends of a prompt are read, and a blank one is one."""
    lines, *_ = files
    found, notes = predict(run, lines.read_bytes(), "--json")
    texts = [json.loads(line)["text"] for line in found]
    assert notes == ""
    assert texts == writer(["a rose ", "", " is"])
    assert len({*texts}) == 3
    assert predict(export, lines.read_bytes(), "--json")[0] == found
    _, notes = predict(run, b"a rose is a rose\n")
    assert "line 1" in notes and notes.count("\n") == 1


def test_score_of_texts_and_of_continuations(run, export, writer, files, call):
    lines, targets, *_ = files
    prompts, answers = ["a rose ", "", " is"], ["is", "a", " "]
    for path in (run, export):
        alone, _ = call("score", path, lines)
        expected = writer.scores([""] * 3, prompts)
        assert [*map(float, alone.split())] == pytest.approx(expected, abs=1e-3)
        found, _ = call("score", path, lines, targets)
        expected = writer.scores(prompts, answers)
        assert [*map(float, found.split())] == pytest.approx(expected, abs=1e-3)


def test_evaluate_reads_one_text(run, files, call, refused):
    *_, text, table = files
    printed, _ = call("evaluate", run, text)
    for name in ("loss ", "perplexity ", "bits per character "):
        assert f"\n{name}" in f"\n{printed}"
    assert f"characters:{len(TEXT)}" in printed
    message = refused("evaluate", run, table)
    assert f"{table}:1: expected a column named 'text'" in message
    assert message.count("\n") == 1
    printed, _ = call("evaluate", run, table, "--columns", "body")
    assert "\nperplexity " in printed
    message = refused("evaluate", run, table, "--columns", "n", "body")
    assert "--columns takes one column here" in message


def test_what_is_refused(run, export, files, refused):
    lines, targets, text, _ = files
    for words, message in (
        (("evaluate", run, lines, targets), "needs one file of text"),
        (("evaluate", export, text), "is an export"),
        (("evaluate", run, f"{text}.missing"), "there is no file"),
        (("evaluate", run, text, "--audio", "."), "--audio is not for"),
        (("score", run, f"{text}.missing"), "there is no file"),
        (("chat", run), "chat needs a dialogue model"),
    ):
        found = refused(*words)
        assert message in found, words
        assert found.count("\n") == 1


def test_there_is_no_attention_to_explain(run, export, call):
    for path, message in (
        (run, "no attention to its source"),
        (export, "needs a signature explain"),
    ):
        output, notes = call("explain", path, text=b"a\n", code=2)
        assert output == ""
        assert message in notes
        options = "--json", "--attention"
        output, notes = call("predict", path, *options, text=b"a\n", code=2)
        assert output == ""
        assert "explain" in notes
        assert notes.count("\n") == 1
