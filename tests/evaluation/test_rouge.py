import random

import pytest

from kseq.evaluation import metrics_named, rouge_1, rouge_2, rouge_l
from kseq.evaluation.rouge import _common_subsequence

ALL = (rouge_1, rouge_2, rouge_l)


def test_by_hand():
    """Lin 2004, section 3.1: the same words in another order."""
    reference, output = "police killed the gunman", "the gunman police killed"
    one, two, longest = (rouge([output], [reference]).value for rouge in ALL)
    assert (one, longest) == (100, 50)
    assert two == pytest.approx(100 * 2 / 3)


def test_a_word_is_common_as_often_as_both_have_it():
    assert rouge_1(["a a a"], ["a b a"]).value == pytest.approx(100 * 2 / 3)


def test_case_and_punctuation_do_not_count():
    outputs, references = ["ÉTÉ, (was_it) 2nd?"], ["été was it 2nd"]
    assert [rouge(outputs, references).value for rouge in ALL] == [100] * 3


def test_a_word_has_its_marks():
    """Hindi for "that" and "of" differ in a vowel, which is a mark."""
    for rouge in (rouge_1, rouge_l):
        assert rouge(["\u0915\u093f"], ["\u0915\u0940"]).value == 0
        assert rouge(["\u0915\u093f?"], ["\u0915\u093f"]).value == 100


def test_the_best_reference_counts():
    score = rouge_1(["a b", "c"], [["x", "a b c", "a"], "c"])
    assert score.value == pytest.approx(100 * (0.8 + 1) / 2)
    assert score.text == "ROUGE-1 90.00  F|refs:max|case:lower|stem:no"
    assert score.signature == "F|refs:max|case:lower|stem:no"


@pytest.mark.parametrize("rouge", ALL)
def test_texts_without_words(rouge):
    assert rouge(["", "?", "a", ""], ["a", "!", "", ""]).value == 0
    with pytest.raises(ValueError, match="one output for each"):
        rouge(["a"], [])


def by_table(words, others):
    """The longest common subsequence, by dynamic programming."""
    rows = [[0] * (len(others) + 1) for _ in range(len(words) + 1)]
    for i, word in enumerate(words):
        for j, other in enumerate(others):
            rows[i + 1][j + 1] = max(
                rows[i][j] + (word == other), rows[i][j + 1], rows[i + 1][j]
            )
    return rows[-1][-1]


def test_the_longest_common_subsequence_is_that_of_a_table():
    for _ in range(200):
        one, other = (
            random.choices("abcd", k=random.randrange(90)) for _ in range(2)
        )
        found = _common_subsequence(one, other)
        assert found == (by_table(one, other), len(one), len(other))


@pytest.fixture
def stemmed():
    pytest.importorskip("nltk", reason="needs the extra rouge")
    return metrics_named([f"rouge_{name}_stem" for name in "12l"])


def test_stemmed_words(stemmed):
    """The scores of rouge-score 0.1.2 with its stemmer.

    Sky, news and dying are exceptions of NLTK's; ü separates words.
    """
    outputs = [
        "The skies are dying, and flies died happily.",
        "A relational digitizer runs",
        "Ünïted news!",
    ]
    references = [
        ["A sky dies; the fly is happy and enjoying", "skies"],
        ["relate digitization running"],
        ["nited new"],
    ]
    found = [rouge(outputs, references) for rouge in stemmed]
    expected = [44.257703, 26.666667, 40.336134]
    assert [score.value for score in found] == pytest.approx(expected)
    signature = "F|refs:max|case:lower|tok:ascii|stem:porter"
    assert found[2].text == f"ROUGE-L 40.34  {signature}"


def test_stemmed_words_as_rouge_score(stemmed):
    package = pytest.importorskip("rouge_score.rouge_scorer")
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = package.RougeScorer(names, use_stemmer=True)
    words = [
        *("sky", "skies", "dying", "died", "news", "flies", "fly", "agreed"),
        *("happy", "happily", "relational", "enjoys", "Running", "(its)"),
        *("co-operate", "yyyy", "spied", "ß", "café", "K", "٣", "_a_"),
    ]
    for _ in range(100):
        output, *references = (
            " ".join(random.choices(words, k=random.randrange(20)))
            for _ in range(random.randrange(2, 5))
        )
        right = scorer.score_multi(references, output)
        assert [
            rouge([output], [references]).value for rouge in stemmed
        ] == pytest.approx([100 * right[name].fmeasure for name in names])
