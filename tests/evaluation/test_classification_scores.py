import random

import numpy as np
import pytest

from kseq.evaluation import macro_f1
from kseq.evaluation.classification_scores import (
    class_lines,
    classification_scores,
    confusion_pictures,
)

CLASSES = ["fire", "flood", "police", "ambulance"]


def test_values_with_a_pencil():
    """Of three fires two are found; one of three guesses of fire is wrong."""
    scores = classification_scores(
        ["fire", "fire", "fire", "flood", "flood"],
        ["fire", "fire", "flood", "flood", "fire"],
        CLASSES[:2],
    )
    assert scores["accuracy"] == pytest.approx(3 / 5)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert scores["confusion"].tolist() == [[2, 1], [1, 1]]
    assert scores["per_class"]["flood"] == {
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
        "support": 2,
    }


@pytest.mark.parametrize("known", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [1, 3, 200])
def test_agreement_with_scikit_learn(size, known, seed):
    """Also where a class is never true, never predicted, or neither."""
    from sklearn import metrics  # slow to import

    draw = random.Random(seed)
    labels = draw.choices(CLASSES[:known], k=size)
    predicted = draw.choices(CLASSES[4 - known :], k=size)
    scores = classification_scores(labels, predicted, CLASSES)

    assert scores["accuracy"] == pytest.approx(
        metrics.accuracy_score(labels, predicted)
    )
    assert scores["macro_f1"] == pytest.approx(
        metrics.f1_score(labels, predicted, average="macro", zero_division=0)
    )
    np.testing.assert_array_equal(
        scores["confusion"],
        metrics.confusion_matrix(labels, predicted, labels=CLASSES),
    )
    expected = metrics.precision_recall_fscore_support(
        labels, predicted, labels=CLASSES, zero_division=0
    )
    assert list(scores["per_class"]) == CLASSES
    np.testing.assert_allclose(
        [list(row.values()) for row in scores["per_class"].values()],
        np.transpose(expected),
    )


@pytest.mark.parametrize("predicted", [[], ["fire"], ["fire"] * 3])
def test_each_label_has_a_prediction(predicted):
    labels = ["fire"] * 2 if predicted else []
    with pytest.raises(ValueError, match=f"{len(predicted)} predicted"):
        classification_scores(labels, predicted, CLASSES)


def test_a_label_that_is_no_class_is_named():
    with pytest.raises(ValueError, match="Received: storm"):
        classification_scores(["storm"], ["fire"], CLASSES)


def test_scores_of_many_classes_need_no_table_of_their_pairs():
    """The pairs of 100,000 classes would take 80 GB."""
    classes = [f"class {number}" for number in range(100_000)]
    predicted = [classes[1], *classes[1:]]
    scores = class_lines(classes, predicted, classes)
    assert len(scores) == len(classes)
    assert scores[1].endswith("recall 1  f1 0.6667  support 1")
    assert macro_f1(predicted, classes).value == pytest.approx(1, abs=1e-4)
    assert confusion_pictures(classes, predicted, classes) == {}
