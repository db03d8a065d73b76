import math
from types import SimpleNamespace

import pytest

from kseq.data import Documents
from kseq.evaluation import Classifications, Score, accuracy, fit_temperature
from kseq.user_error import UserError

TEXTS = ["smoke here", "water and smoke", "water"]
EVIDENCE = [(0, "smoke"), (0, "smoke"), (0, "water")]


def documents(labels, evidence=None):
    return Documents(TEXTS, labels, evidence=evidence)


@pytest.mark.parametrize("size", [2, 4096])
def test_scores_rows_and_report(classifier, size, monkeypatch):
    monkeypatch.setattr("kseq.evaluation.score._CHUNK", size)
    labels = ["fire", "flood", "flood"]
    found = Classifications(classifier, documents(labels))
    assert len(found) == 3
    # Of the classes fire and flood one label each is wrong in one direction.
    assert found.scores() == pytest.approx(
        {
            "loss": -(math.log(0.8) + math.log(0.2) + math.log(0.9)) / 3,
            "accuracy": 2 / 3,
            "macro_f1": 2 / 3,
        }
    )
    assert found.rows(2) == [
        ("smoke here", "fire", "fire"),
        ("water and smoke", "flood", "fire"),
    ]
    assert found.report() == [
        "accuracy 66.67 ± 50.00 %  bs:1000|seed:12345",
        "macro F1 0.6667",
        "calibration error 23.33 %  bins:15",
        "fire: precision 0.5  recall 1  f1 0.6667  support 1",
        "flood: precision 1  recall 0.5  f1 0.6667  support 2",
    ]


def test_the_temperature_of_its_labels(classifier):
    """Two of three are right, with 80, 80 and 90 %."""
    found = Classifications(classifier, documents(["fire", "flood", "flood"]))
    probabilities = [[0.8, 0.2], [0.8, 0.2], [0.1, 0.9]]
    expected = fit_temperature(probabilities, [0, 1, 1])
    assert found.fit_temperature() == pytest.approx(expected, abs=1e-3)
    assert expected > 1.5


def test_evidence_is_looked_for(classifier):
    labels = ["fire", "fire", "flood"]
    found = Classifications(classifier, documents(labels, EVIDENCE))
    found.scores()
    assert found.report()[-2:] == [
        "highest weight on the decisive sentence: 100.0%",
        "highest weight on the decisive word: 66.7%",
    ]


def test_pictures(classifier):
    found = Classifications(classifier, documents(["fire", "fire", "flood"]))
    found.scores()
    pictures = found.pictures(2)
    assert list(pictures) == [
        *("confusion", "reliability"),
        *("documents/0", "documents/1"),
    ]
    assert all(png.startswith(b"\x89PNG\r\n") for png in pictures.values())


def test_a_user_s_own_metric(classifier):
    def fires(outputs, references):
        return Score(outputs.count("fire"), "some fires")

    found = Classifications(
        classifier, documents(["fire"] * 3), metrics=[fires, accuracy]
    )
    assert found.scores()["fires"] == 2
    assert found.report()[:2] == [
        "some fires",
        "accuracy 66.67 ± 50.00 %  bs:1000|seed:12345",
    ]


def test_a_label_that_the_model_does_not_know(classifier):
    message = "examples have labels that the model does not know: spam, storm"
    with pytest.raises(UserError, match=message):
        Classifications(classifier, documents(["storm", "fire", "spam"]))


def test_inputs_need_not_be_texts():
    predictor = SimpleNamespace(
        labels=["dot", "dash"],
        probabilities=lambda inputs, progress: [
            {"dot": value, "dash": 1 - value} for value in inputs
        ],
        explain=lambda inputs: [
            SimpleNamespace(_repr_png_=f"picture of {value}".encode)
            for value in inputs
        ],
    )
    examples = SimpleNamespace(
        inputs=[0.9, 0.2],
        names=["1.wav", "2.wav"],
        labels=["dot", "dot"],
        evidence=None,
    )
    found = Classifications(predictor, examples)
    assert found.scores()["accuracy"] == 0.5
    assert found.rows(2) == [("1.wav", "dot", "dot"), ("2.wav", "dot", "dash")]
    assert found.pictures(1)["documents/0"] == b"picture of 0.9"


def test_a_temperature_of_many_labels_is_fitted_to_a_sample(
    classifier, monkeypatch
):
    """Of three examples one is left out."""
    monkeypatch.setattr("kseq.evaluation.calibration._MOST", 2 * 2)
    labels = ["fire", "flood", "flood"]
    found = Classifications(classifier, documents(labels))
    read, probabilities = [], classifier.probabilities
    monkeypatch.setattr(
        *(classifier, "probabilities"),
        lambda texts, _: read.extend(texts) or probabilities(texts),
    )
    temperature = found.fit_temperature()
    assert len(read) == 2 and read == sorted(read, key=TEXTS.index)
    columns = {"fire": 0, "flood": 1}
    expected = fit_temperature(
        [[*row.values()] for row in probabilities(read)],
        [columns[labels[TEXTS.index(text)]] for text in read],
    )
    assert temperature == pytest.approx(expected, abs=1e-3)


def test_with_many_labels_fewer_inputs_are_answered_at_once(monkeypatch):
    monkeypatch.setattr("kseq.evaluation.score._NUMBERS", 7)
    counts = []

    def probabilities(inputs, progress):
        counts.append(len(inputs))
        return [{"dot": 0.2, "dash": 0.5, "pause": 0.3} for _ in inputs]

    predictor = SimpleNamespace(
        labels=["dot", "dash", "pause"], probabilities=probabilities
    )
    examples = SimpleNamespace(
        inputs=[0.0] * 5, labels=["dash"] * 5, evidence=None
    )
    found = Classifications(predictor, examples)
    assert found.scores()["accuracy"] == 1
    assert found.fit_temperature() == 1
    assert counts == [2, 2, 1] * 2
