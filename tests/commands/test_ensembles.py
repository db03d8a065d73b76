"""Several runs that answer as one model."""

import json
import shutil

import keras
import numpy as np
import pytest

from kseq import data, models, serving
from kseq.layers import LuongAttention
from tests.commands.saved_run import saved_run
from tests.commands.some_lines import LEARNT, SOURCES, lines_of


@pytest.fixture(scope="session")
def other_run(tmp_path_factory, run):
    """An untrained LSTM with the tokenizers of the Transformer."""
    path = tmp_path_factory.mktemp("other") / "lstm"
    return lstm_run(run, path, LuongAttention("dot"))


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory, run):
    """One without attention, which is traced sooner: no near ties."""
    return lstm_run(run, tmp_path_factory.mktemp("plain") / "lstm", None)


def lstm_run(run, path, attention):
    keras.utils.set_random_seed(2)
    tokenizer = data.Tokenizer.load(run / "target.model")
    model = models.LSTMSeq2Seq(
        tokenizer.vocab_size,
        tokenizer.vocab_size,
        embedding_dim=4,
        units=4,
        attention=attention,
    )
    if attention is None:
        for weight in model.trainable_variables:
            weight.assign(keras.random.normal(weight.shape))
    generator = serving.Generator(
        model, data.TextPreprocessor(tokenizer, 64), tokenizer
    )
    return saved_run(generator, path)


def test_predict_score_and_evaluate(run, other_run, call, tmp_path):
    together, notes = call(
        *("predict", run, other_run, "--json", "--attention"),
        text=lines_of(SOURCES),
    )
    assert notes == ""
    found = [json.loads(line) for line in together.splitlines()]
    assert len(found) == len(SOURCES)
    assert all("attention" in each for each in found)

    source = tmp_path / "source"
    target = tmp_path / "target"
    source.write_bytes(lines_of(SOURCES))
    target.write_text("".join(f"{each['text']}\n" for each in found))
    scores, _ = call("score", run, source, target, "--ensemble", other_run)
    np.testing.assert_allclose(
        [float(score) for score in scores.split()],
        [each["score"] for each in found],
        atol=2e-4,
    )
    report, _ = call("evaluate", run, source, target, "--ensemble", other_run)
    assert "exact match 100.00 %" in report


def test_an_export_of_several_answers_as_they_do(
    other_run, plain_run, call, predict, load, tmp_path
):
    """Of small models, greedily: the test above has others, and a beam."""
    to = tmp_path / "both"
    runs = (other_run, plain_run)
    output, _ = call("export", *runs, "--greedy", "--to", to)
    assert output.strip() == str(to / "1")
    expected, _ = call(
        *("predict", *runs, "--greedy", "--scores"), text=lines_of(LEARNT)
    )
    found, _ = predict(to, lines_of(LEARNT), "--scores")
    assert "\n".join(found) == expected.strip("\n")
    card = (to / "1" / "assets.extra" / "kseq.json").read_text()
    parameters = [load(each).model.count_params() for each in runs]
    assert json.loads(card)["parameters"] == sum(parameters)


def test_an_ensemble_needs_equal_tokenizers(run, other_run, refused, tmp_path):
    strange = tmp_path / "strange"
    shutil.copytree(other_run, strange)
    tokenizer = data.Tokenizer.train([*LEARNT[::-1], "zz"], 270, "bpe")
    (strange / "target.model").write_bytes(tokenizer.model)
    message = refused("predict", run, other_run, strange)
    assert message.count("\n") == 1
    assert f"{run} and {strange} cannot be an ensemble" in message
    assert "different tokenizers (target.model)" in message


def test_an_ensemble_is_of_runs_that_generate_text(
    run, other_run, export, classifier_run, refused, tmp_path
):
    assert "is an export" in refused("predict", run, export)
    assert "an ensemble needs run" in refused("predict", export, run).lower()
    again = run / ".." / run.name
    assert "one is given twice" in refused("predict", run, other_run, again)
    message = refused("predict", run, classifier_run)
    assert "they have different answers" in message
    message = refused("export", run, run, "--format", "ctranslate2")
    assert "takes one run" in message
    for options, text in (
        ((), "needs --languages"),
        (("--languages", "de", "../en"), "Received: '../en'"),
        (("--languages", "de", "en", "--quantize", "int8"), "compute_type"),
        (("--languages", "de", "en", "--to", tmp_path), "a file, NAME.argos"),
        (("--languages", "de", "en", "--to", tmp_path / ".." / ".."), "name"),
    ):
        message = refused("export", run, "--format", "argos", *options)
        assert text in message
    for options, text in (
        (("--format", "litert", "--quantize", "bfloat16"), "float16 or int8"),
        (("--quantize", "float16"), "bfloat16 or int8. Received: float16"),
    ):
        assert text in refused("export", run, *options)
    file = tmp_path / "file"
    file.touch()
    assert "file is not a directory" in refused("export", run, "--to", file)
    message = refused("export", run, "--format", "litert", "--to", file)
    assert "file exists; give a new path with --to" in message
    message = refused("export", run, run, "--format", "litert")
    assert "--format litert takes one run" in message
    message = refused("export", run, "--languages", "de", "en")
    assert "--languages is for --format argos" in message
    message = refused("predict", run, run)
    assert "one is given twice" in message
    assert "does not exist" in refused("predict", run, "nowhere")


@pytest.fixture(scope="module")
def other_classifier(classifier_run, tmp_path_factory):
    """A function: a run with its tokenizer, of another model."""

    def other_classifier(labels, temperature=1.0):
        keras.utils.set_random_seed(2)
        tokenizer = data.Tokenizer.load(classifier_run / "source.model")
        sizes = {"model_dim": 8, "ffn_dim": 8, "num_heads": 2}
        model = models.TransformerClassifier(
            tokenizer.vocab_size, len(labels), num_layers=1, **sizes
        )
        for weight in model.trainable_variables:
            weight.assign(keras.random.normal(weight.shape))
        preprocessor = data.DocumentPreprocessor(tokenizer)
        classifier = serving.Classifier(
            model, preprocessor, labels, temperature
        )
        path = tmp_path_factory.mktemp("labels") / "other"
        return saved_run(classifier, path)

    return other_classifier


def test_classifiers_answer_together(
    classifier_run, other_classifier, call, load, tmp_path
):
    """Each by its own temperature; also in an export."""
    labels = load(classifier_run).labels
    runs = classifier_run, other_classifier(labels, 2.0)
    texts = ["The baker saw smoke. It was noon.", "Nobody was hurt."]
    alone = [load(run).probabilities(texts) for run in runs]
    expected = np.mean(
        [[[*each.values()] for each in answers] for answers in alone], axis=0
    )

    def probabilities(*words):
        given = "".join(f"{text}\n" for text in texts).encode()
        output, _ = call("predict", *words, "--json", text=given)
        records = [json.loads(line) for line in output.splitlines()]
        return [
            [each["probabilities"][name] for name in labels] for each in records
        ]

    np.testing.assert_allclose(probabilities(*runs), expected, atol=1e-4)
    to = tmp_path / "both"
    call("export", *runs, "--to", to)
    np.testing.assert_allclose(probabilities(to), expected, atol=1e-4)
    shares = [load(run).explain(texts[:1])[0].sentence_weights for run in runs]
    [together] = load(to).explain(texts[:1])
    np.testing.assert_allclose(
        together.sentence_weights, np.mean(shares, axis=0), atol=1e-5
    )


def test_an_ensemble_needs_equal_labels(
    classifier_run, other_classifier, refused
):
    message = refused("predict", classifier_run, other_classifier(("a", "b")))
    assert "they have different labels" in message
