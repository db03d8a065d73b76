import dataclasses
import json
import shutil
import sys

import keras
import pytest

from kseq import cli, data, models, runs, training
from kseq.data.planted import planted
from tests.commands.some_lines import lines_of


@dataclasses.dataclass(frozen=True)
class Config:
    seed: int = 1


DOCUMENTS = planted("train", size=40)
TEXTS = [*DOCUMENTS.texts[:3], "", "Smoke & <b>flames</b>. 😀"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a classifier that has been trained for a moment."""
    keras.utils.set_random_seed(1)
    run = runs.RunDirectory(tmp_path_factory.mktemp("runs") / "labels")
    run.start(Config())
    labels = ("ambulance", "fire", "flood", "police")
    tokenizer = data.DocumentTokenizer.train(DOCUMENTS, 400)
    run.save_document_tokenizer(tokenizer, labels)
    model = models.FlatAttention(
        400, 4, embedding_dim=8, units=4, attention_units=4
    )
    model.compile(keras.optimizers.Adam(0.01))
    run.save_model(model)
    ids = tokenizer.tokenize_all(DOCUMENTS.texts)
    model.fit(
        data.document_batches(
            ids, DOCUMENTS.labels, labels, batch_words=2000, seed=1
        ),
        steps_per_epoch=5,
        shuffle=False,
        verbose=0,
        callbacks=[training.Checkpoints(run, monitor="loss", mode="min")],
    )
    return run.path


@pytest.fixture(scope="module")
def export(run):
    path = run.parent / "saved_models"
    assert cli.main(["export", str(run), "--to", str(path)]) == 0
    return path


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Runs a command with an input; gives its output."""

    def call(command, path, text, *options):
        (tmp_path / "input").write_bytes(text)
        capfd.readouterr()
        with open(tmp_path / "input") as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert cli.main([command, str(path), *options]) == 0
        return capfd.readouterr().out

    return call


def test_a_label_for_each_line(run, export, call):
    labels = call("predict", run, lines_of(TEXTS)).splitlines()
    assert len(labels) == len(TEXTS)
    assert set(labels) <= set(DOCUMENTS.labels)
    assert call("predict", export, lines_of(TEXTS)).splitlines() == labels


def test_scores_and_n_best_stand_in_columns(run, call):
    labels = call("predict", run, lines_of(TEXTS)).splitlines()
    options = ("--n-best", "3", "--scores")
    output = call("predict", run, lines_of(TEXTS), *options)
    for label, line in zip(labels, output.splitlines(), strict=True):
        score, best, second_score, _, third_score, _ = line.split("\t")
        assert best == label
        assert float(score) >= float(second_score) >= float(third_score) > 0


def test_json_with_attention(run, call):
    options = ("--json", "--attention")
    output = call("predict", run, lines_of(TEXTS), *options)
    first, *_, empty, last = map(json.loads, output.splitlines())
    assert first["probabilities"][first["label"]] == first["probability"]
    attention = first["attention"]
    assert " ".join(attention["sentences"]) == TEXTS[0]
    assert sum(attention["sentence_weights"]) == pytest.approx(1, abs=1e-4)
    for words, weights in zip(
        attention["words"], attention["word_weights"], strict=True
    ):
        assert len(words) == len(weights)
        assert sum(weights) == pytest.approx(1, abs=1e-4)
    assert empty["attention"]["sentences"] == []
    assert last["attention"]["words"][1] == [" ", "😀"]


def test_explanation_is_a_page(run, export, call):
    page = call("explain", run, lines_of(TEXTS))
    assert page.startswith("<!doctype html>")
    assert page.count("<article") == len(TEXTS)
    assert "<b>" not in page
    assert "&lt;" in page and "😀" in page
    assert call("explain", export, lines_of(TEXTS)).count("<article") == 5


def test_evaluation_prints_accuracy_and_f1(run, call, tmp_path, capfd):
    rows = zip(DOCUMENTS.labels, DOCUMENTS.texts, strict=True)
    table = tmp_path / "table.tsv"
    lines = [f"{i}\t{a}\t{b}" for i, (a, b) in enumerate(rows)]
    table.write_text("\n".join(["id\tkind\tbody", *lines]))
    assert (
        cli.main(
            ["evaluate", str(run), str(table), "--columns", "kind", "body"]
        )
        == 0
    )
    accuracy, f1, *rest = capfd.readouterr().out.splitlines()
    predicted = call("predict", run, lines_of(DOCUMENTS.texts)).splitlines()
    pairs = zip(predicted, DOCUMENTS.labels, strict=True)
    expected = sum(a == b for a, b in pairs) / 40
    assert accuracy == f"accuracy {100 * expected:.2f} %"
    assert f1.startswith("macro F1 0.")
    assert [line.split(":")[0] for line in rest] == [
        "ambulance",
        "fire",
        "flood",
        "police",
    ]


def test_inspecting(run, export, capfd):
    assert cli.main(["inspect", str(run)]) == 0
    facts = capfd.readouterr().out
    assert "FlatAttention" in facts and "'ambulance', 'fire'" in facts
    assert cli.main(["inspect", str(export)]) == 0
    facts = capfd.readouterr().out
    assert "classify" in facts and "SentenceFragmentsV2" in facts


def test_bad_commands_are_refused(run, refused, tmp_path):
    table = tmp_path / "table.tsv"
    table.write_text("fire\tsmoke\nspam\tbuy\n")
    assert "does not know: spam" in refused("evaluate", run, table)
    assert "one file" in refused("evaluate", run, table, table)
    assert "classifier" in refused("score", run, table, table)
    assert "for translators" in refused("predict", run, "--beam-size", "2")
    table.write_text("one column\n")
    assert "table.tsv:1" in refused("evaluate", run, table)


def test_nothing_to_explain(run, refused, monkeypatch, tmp_path):
    (tmp_path / "empty").touch()
    with open(tmp_path / "empty") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert "no document" in refused("explain", run)


def test_a_broken_description_is_one_message(run, refused, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "documents.json").write_text("{")
    assert "documents.json is broken" in refused("predict", copy)
