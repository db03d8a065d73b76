from itertools import zip_longest

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from kseq.evaluation import (
    accuracy,
    bleu,
    cer,
    chrf,
    classification_scores,
    exact_match,
    macro_f1,
    rouge_l,
    span_f1,
    wer,
)

ALL = (accuracy, bleu, chrf, exact_match, macro_f1)


def test_perfect_translations():
    texts = ["the cat sat on the mat .", "a dog barks at the moon ."]
    assert bleu(texts, texts).value == pytest.approx(100)
    assert chrf(texts, texts).value == pytest.approx(100)
    assert exact_match(texts, texts).value == 1


def test_bleu_with_a_pencil():
    """4 of 5 words, 3 of 4 pairs, 2 of 3 triples and 1 of 2 quadruples."""
    outputs, references = ["a b c d x"], ["a b c d e"]
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    score = bleu(outputs, references)
    assert score.value == pytest.approx(expected)
    assert score.text.startswith(f"BLEU {expected:.2f} ")
    assert exact_match(outputs, references).value == 0


def test_several_references_as_sacrebleu_has_them():
    outputs = ["the cat sat on a mat", "a dog barks at it"]
    references = [
        ["the cat sat on the mat", "a cat sat on a mat"],
        ["a dog barks at the moon"],
    ]
    first, second = (list(each) for each in zip_longest(*references))
    expected = BLEU(force=True).corpus_score(outputs, [first, second]).score
    assert bleu(outputs, references).value == pytest.approx(expected)
    assert "nrefs:var|" in bleu(outputs, references).text
    assert "nrefs:2|" in chrf(outputs, [references[0]] * 2).text
    one = [each[0] for each in references]
    assert bleu(outputs, one) == bleu(outputs, [[each] for each in one])
    assert exact_match(["b", "c"], [["a", "b"], ["a"]]).value == 0.5


def test_signatures_tell_case_and_tokenizer():
    assert "case:mixed" in bleu(["a"], ["a"]).text
    assert "tok:13a" in bleu(["a"], ["a"]).text
    assert "version:" in chrf(["a"], ["a"]).text


def test_labels_with_a_pencil():
    """Of three fires two are found; one of three guesses of fire is wrong."""
    labels = ["fire", "fire", "fire", "flood", "flood"]
    predicted = ["fire", "fire", "flood", "flood", "fire"]
    assert accuracy(predicted, labels) == (3 / 5, "accuracy 60.00 %")
    f1 = (2 / 3 + 1 / 2) / 2
    assert macro_f1(predicted, labels).value == pytest.approx(f1)
    assert macro_f1(predicted, labels).text == f"macro F1 {f1:.4f}"


def test_agreement_with_scikit_learn():
    """Outputs come first: precision and recall are not exchanged."""
    from sklearn import metrics  # slow to import

    labels, predicted = list("aabbbc"), list("abbbba")
    assert macro_f1(predicted, labels).value == pytest.approx(
        metrics.f1_score(labels, predicted, average="macro", zero_division=0)
    )


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("outputs", [[], ["a"], ["a", "b", "c"]])
def test_one_output_for_each_reference(metric, outputs):
    references = ["a", "b"] if outputs else []
    with pytest.raises(ValueError, match=f"{len(references)} (ref|lab)"):
        metric(outputs, references)


TEXTS = (accuracy, bleu, chrf, cer, exact_match, rouge_l, span_f1, wer)


@pytest.mark.parametrize("metric", TEXTS)
@pytest.mark.parametrize(
    ("outputs", "received"),
    [
        ("ab", "'ab'"),
        ([b"a", b"b"], "a list with b'a'"),
        (["a", None], "a list with None"),
        ([1, 2], "a list with 1"),
    ],
)
def test_texts_are_lists_of_str(metric, outputs, received):
    """Equal bytes counted as wrong, and a str as one output a character."""
    for pair in ((outputs, outputs), (["a", "b"], outputs)):
        with pytest.raises(ValueError, match=f"Received: {received}"):
            metric(*pair)


@pytest.mark.parametrize("metric", ALL)
def test_arrays_of_texts(metric):
    texts = ["a rose is a rose", "a dog barks at the moon"]
    assert metric(np.array(texts), np.array(texts)) == metric(texts, texts)


def test_arrays_of_labels():
    labels, predicted = np.array([0, 1, 1]), np.array([0, 1, 0])
    scores = classification_scores(labels, predicted, [0, 1])
    assert scores["confusion"].tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("metric", [bleu, chrf, exact_match])
def test_a_reference_for_each_output(metric):
    with pytest.raises(ValueError, match="none for output 2"):
        metric(["a", "b"], [["a"], []])
    with pytest.raises(ValueError, match="none for output 1"):
        metric(["a", "b"], [(), ("b",)])
