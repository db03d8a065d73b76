import json
import shutil

import pytest

from kseq import cli
from tests.commands.some_lines import lines_of

pytestmark = pytest.mark.slow  # as those of a translator

OTHERS = ["", "Smoke & <b>flames</b>. 😀"]


@pytest.fixture
def texts(documents):
    return [*documents.texts[:3], *OTHERS]


@pytest.fixture
def run(classifier_run):
    return classifier_run


@pytest.fixture
def export(classifier_export):
    return classifier_export


@pytest.fixture
def output_of(call):
    """Runs a command with lines of input; gives its output."""
    return lambda command, path, texts, *options: call(
        command, path, *options, text=lines_of(texts)
    )[0]


def test_a_label_for_each_line(run, export, documents, texts, output_of):
    labels = output_of("predict", run, texts).splitlines()
    assert len(labels) == len(texts)
    assert set(labels) <= set(documents.labels)
    assert output_of("predict", export, texts).splitlines() == labels


def test_lines_are_read_in_chunks_for_the_number_of_labels(
    run, export, texts, output_of, monkeypatch
):
    counts = []

    def size(batch_size, num_classes):
        counts.append(num_classes)
        return 2

    monkeypatch.setattr("kseq.commands.predict.chunk_size", size)
    labels = output_of("predict", run, texts)
    assert output_of("predict", export, texts) == labels
    assert counts == [4, 4]


def test_scores_and_n_best_are_columns(run, texts, output_of):
    labels = output_of("predict", run, texts).splitlines()
    options = ("--n-best", "3", "--scores")
    output = output_of("predict", run, texts, *options)
    for label, line in zip(labels, output.splitlines(), strict=True):
        score, best, second_score, _, third_score, _ = line.split("\t")
        assert best == label
        assert float(score) >= float(second_score) >= float(third_score) > 0


def test_scores_alone_are_those_of_all_labels(
    run, export, texts, output_of, call
):
    records = map(
        json.loads, output_of("predict", run, texts, "--json").splitlines()
    )
    for path in (run, export):
        output = output_of("predict", path, texts, "--scores")
        for line, record in zip(output.splitlines(), records, strict=False):
            scores, labels = line.split("\t")[::2], line.split("\t")[1::2]
            assert labels[0] == record["label"]
            assert list(map(float, scores)) == sorted(
                map(float, scores), reverse=True
            )
            found = dict(zip(labels, map(float, scores), strict=True))
            assert found == pytest.approx(record["probabilities"], abs=1e-4)
            assert list(record["probabilities"]) == sorted(labels)
        _, message = call("predict", path, "--n-best=5", text=b"a\n", code=2)
        assert message == (
            "kseq predict: --n-best 5 is more than the 4 labels of the model.\n"
        )


def test_json_with_attention(run, texts, output_of):
    options = ("--json", "--attention")
    output = output_of("predict", run, texts, *options)
    first, *_, empty, last = map(json.loads, output.splitlines())
    assert first["probabilities"][first["label"]] == first["probability"]
    attention = first["attention"]
    assert " ".join(attention["sentences"]) == texts[0]
    assert sum(attention["sentence_weights"]) == pytest.approx(1, abs=1e-4)
    for words, weights in zip(
        attention["words"], attention["word_weights"], strict=True
    ):
        assert len(words) == len(weights)
        assert sum(weights) == pytest.approx(1, abs=1e-4)
    assert empty["attention"]["sentences"] == []
    assert last["attention"]["words"][1] == [" ", "😀"]


def test_explanation_is_a_page(run, export, texts, output_of):
    page = output_of("explain", run, texts)
    assert page.startswith("<!doctype html>")
    assert page.count("<article") == len(texts)
    assert "<b>" not in page
    assert "&lt;" in page and "😀" in page
    assert output_of("explain", export, texts).count("<article") == 5


def test_a_document_that_is_cut_is_reported(run, call):
    text = b"a\n" + b"Smoke. " * 30_000 + b"\n\0\r\n\xff"
    page, notes = call("explain", run, text=text)
    assert page.count("<article") == 4
    assert notes == (
        "line 2 is too long; its end was left out.\n"
        "Standard input: 1 line is not valid UTF-8; invalid bytes become "
        "U+FFFD.\n"
    )
    assert page.count("its end was left out") == 1


def test_evaluation_prints_accuracy_and_f1(
    run, documents, call, output_of, tmp_path
):
    rows = zip(documents.labels, documents.texts, strict=True)
    table = tmp_path / "table.tsv"
    lines = [f"{i}\t{a}\t{b}" for i, (a, b) in enumerate(rows)]
    table.write_text("\n".join(["id\tkind\tbody", *lines]))
    output, _ = call("evaluate", run, table, "--columns", "kind", "body")
    for number, (label, text) in enumerate(
        zip(documents.labels, documents.texts, strict=True)
    ):
        folder = tmp_path / "folder" / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(text)
    again, _ = call("evaluate", run, tmp_path / "folder")
    assert again.splitlines()[3:] == output.splitlines()[3:]  # but intervals
    accuracy, f1, error, *rest = output.splitlines()
    predicted = output_of("predict", run, documents.texts).splitlines()
    pairs = zip(predicted, documents.labels, strict=True)
    expected = sum(a == b for a, b in pairs) / 40
    assert accuracy.startswith(f"accuracy {100 * expected:.2f} ± ")
    assert f1.startswith("macro F1 0.")
    assert error.startswith("calibration error ")
    assert [line.split(":")[0] for line in rest] == [
        "ambulance",
        "fire",
        "flood",
        "police",
    ]


def test_pairs_are_evaluated(run, documents, call, tmp_path):
    rows = zip(documents.labels, documents.texts, strict=True)
    table, lists_file = tmp_path / "pairs.tsv", tmp_path / "lists.jsonl"
    table.write_text("".join(f"{a}\t{b}\tSo?\n" for a, b in rows))
    records = [
        json.dumps({"label": label, "sentences": [text, "So?"]})
        for label, text in zip(documents.labels, documents.texts, strict=True)
    ]
    lists_file.write_text("\n".join(records))
    pairs, _ = call("evaluate", run, table, "--columns", "1", "2", "3")
    lists, _ = call("evaluate", run, lists_file)
    assert pairs == lists


def test_inspecting(run, export, capfd):
    assert cli.main(["inspect", str(run)]) == 0
    facts = capfd.readouterr().out
    assert "FlatAttention" in facts and "'ambulance', 'fire'" in facts
    assert cli.main(["inspect", str(export)]) == 0
    facts = capfd.readouterr().out
    assert "classify" in facts and "SentenceFragmentsV2" in facts


def test_bad_commands_are_refused(run, refused, call, tmp_path):
    table = tmp_path / "table.tsv"
    table.write_text("fire\tsmoke\nspam\tbuy\n")
    assert "does not know: spam" in refused("evaluate", run, table)
    assert "one file" in refused("evaluate", run, table, table)
    assert "generate text" in refused("score", run, table, table)
    prefix = ("--prefix", table)
    output, message = call("predict", run, *prefix, text=b"a\nb\n", code=2)
    assert (output, message) == (
        "",
        "kseq predict: --prefix is for models that generate text; this one "
        "predicts labels.\n",
    )
    for option in (["--beam-size", "2"], ["--greedy"], ["--length-penalty=1"]):
        message = refused("predict", run, *option)
        assert "returns labels; a search is only for" in message
    table.write_text("one column\n")
    assert "table.tsv:1" in refused("evaluate", run, table)


def test_nothing_to_explain(run, call):
    output, message = call("explain", run, code=2)
    assert output == ""
    assert message == "kseq explain: there is no line in the input.\n"


def test_a_broken_description_is_one_message(run, refused, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "task.json").write_text("{")
    assert "task.json is broken" in refused("predict", copy)
    for content in ("[]", "{}", '{"labels": "fire"}', '{"max_length": "9"}'):
        (copy / "task.json").write_text(content)
        assert "task.json is broken" in refused("predict", copy)
    (copy / "task.json").write_text('{"labels": ["fire", "flood"]}')
    assert "config of a search or preproc" in refused("predict", copy)
