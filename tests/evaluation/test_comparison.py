import contextlib
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from kseq.evaluation import (
    Comparison,
    comparison,
    exact_match,
    has_line_statistics,
    metrics_named,
    resampling,
    rouge_1,
)
from kseq.evaluation.line_statistics import (
    line_statistics,
    scores_and_statistics,
)
from kseq.evaluation.resampling import (
    bootstrap,
    half_width,
    randomized_differences,
    with_intervals,
)
from kseq.user_error import ArgumentError

WORDS = [
    "a",
    "man",
    "in",
    "red",
    "shirts",
    "plays",
    "the",
    "old",
    "guitar",
    "near",
    "some",
    "water",
    ".",
]
RESAMPLED = (
    *("bleu", "chrf", "exact_match", "cer", "wer", "ter", "rouge_1"),
    *("rouge_2", "rouge_l", "bleu_char", "bleu_zh", "chrf_plus_plus"),
    *(["rouge_2_stem"] if find_spec("nltk") else []),
)


@pytest.fixture(scope="module")
def texts(seed=0):
    """References, and two systems that leave out words."""
    rng = np.random.default_rng(seed)
    references = [
        " ".join(rng.choice(WORDS, size=rng.integers(3, 12))) for _ in range(70)
    ]

    def system(rate):
        return [
            " ".join(word for word in text.split() if rng.random() > rate)
            for text in references
        ]

    return references, [system(0.1), system(0.16)]


@pytest.mark.parametrize("name", RESAMPLED)
def test_sums_over_lines_give_the_value_of_the_metric(texts, name):
    references, [outputs, _] = texts
    several = [[text, "a man"] for text in references]
    [metric] = metrics_named([name])
    for given in (references, several):
        score = metric(outputs, given)
        found = line_statistics(metric, outputs, given)
        assert found.rows.shape[0] == len(outputs)
        assert f" {found.total():.2f}" in score.text
        assert score.text.startswith(found.label)
        assert score.signature == found.signature


@pytest.mark.parametrize("name", RESAMPLED)
def test_scores_with_statistics_are_the_values_of_the_metric(texts, name):
    references, [outputs, _] = texts
    several = [[text, "a man"] for text in references]
    [metric] = metrics_named([name])
    for given in (references, several):
        scores, _ = scores_and_statistics([metric], outputs, given)
        assert scores == {name: metric(outputs, given)}


def test_metrics_of_all_lines_at_once_are_refused(texts):
    references, [outputs, _] = texts
    [distinct] = metrics_named(["distinct_1"])
    assert not has_line_statistics(distinct)
    with pytest.raises(ArgumentError, match="distinct_1 depends on all lines"):
        line_statistics(distinct, outputs, references)


def test_it_agrees_with_sacrebleu(texts):
    """With as many p-values: no differences are equal here."""
    references, outputs = texts[0][:40], [each[:40] for each in texts[1]]
    oracle = {"bleu": BLEU(), "chrf": CHRF()}
    compared = Comparison(
        references, references, outputs, metrics_named(oracle)
    )
    named = list(zip("AB", outputs, strict=True))
    found = {
        kind: PairedTest(named, oracle, [references], kind)()[1]
        for kind in ("bs", "ar")
    }
    for scores, name in zip(compared.scores, ("BLEU", "chrF2"), strict=True):
        results = found["bs"][name]
        for number, result in enumerate(results):
            assert scores.values[number] == pytest.approx(result.score)
            assert scores.half_widths[number] == pytest.approx(
                result.ci, rel=1e-4
            )
        assert scores.p_bootstrap == pytest.approx(results[1].p_value)
        assert scores.p_randomization == pytest.approx(
            found["ar"][name][1].p_value
        )
        assert scores.signature.startswith("bs:1000|ar:10000|seed:12345|nrefs")


def test_ties_count(texts):
    """Of TER and of exact match, whose differences take few values."""
    references, outputs = texts
    [scores] = Comparison(
        references, references, outputs, metrics_named(["ter"])
    ).scores
    named = list(zip("AB", outputs, strict=True))
    _, found = PairedTest(named, {"ter": TER()}, [references], "ar")()
    assert scores.p_randomization > found["TER"][1].p_value


def test_the_p_value_of_exact_match_by_enumeration():
    """Five lines differ: of 32 differences two are as large."""
    right = [f"{number}" for number in range(40)]
    worse = ["x"] * 5 + right[5:]
    [scores] = Comparison(right, right, [worse, right], [exact_match]).scores
    assert scores.p_randomization == pytest.approx(2 / 2**5, abs=0.01)
    assert scores.difference == 12.5
    assert scores.better is None


def test_equal_systems_do_not_differ(texts):
    references, outputs = texts[0][:20], texts[1][0][:20]
    compared = Comparison(
        references, references, [outputs, outputs], metrics_named(RESAMPLED)
    )
    for scores in compared.scores:
        assert scores.difference == 0
        assert scores.interval == (0, 0)
        assert scores.p_bootstrap == scores.p_randomization == 1
        assert scores.better is None
    assert compared.counts() == (0, len(references), 0)
    assert compared.gains(3) == compared.losses(3) == []
    assert compared.verdict().startswith("No difference is significant")


def test_the_better_system_is_named():
    right = [f"{number} and a few more" for number in range(50)]
    wrong = ["x"] * 20 + right[20:]
    compared = Comparison(
        right, right, [wrong, right], metrics_named(["bleu", "wer"])
    )
    bleu, wer = compared.scores
    assert wer.difference < 0 < bleu.difference
    assert wer.better == bleu.better == 1
    assert compared.verdict() == (
        "B is better in BLEU, WER: significant at 0.05 by both tests."
    )
    swapped = Comparison(
        right, right, [right, wrong], metrics_named(["bleu", "wer"])
    )
    assert [scores.better for scores in swapped.scores] == [0, 0]
    assert swapped.scores[0].p_bootstrap == bleu.p_bootstrap


def test_lines_are_ranked_by_what_changed():
    right = ["one", "two", "three", "four"]
    first = ["one", "two", "three", "fear"]
    second = ["one", "two", "x", "four"]
    compared = Comparison(
        list("abcd"), right, [first, second], metrics_named(["bleu", "chrf"])
    )
    assert compared.ranked_by.metric == "chrf"
    assert [line.place for line in compared.gains(9)] == [3]
    [worst] = compared.losses(9)
    assert worst.source == "c" and worst.references == ["three"]
    assert worst.outputs == ("three", "x") and worst.values[0] == 100
    assert compared.counts() == (1, 2, 1)
    assert compared.gains(0) == []
    errors = Comparison(
        list("abcd"), right, [first, second], metrics_named(["cer"])
    )
    assert [line.place for line in errors.losses(9)] == [2]


def test_groups_by_length_and_frequency():
    lengths = [2, 4, 6, 8] * 10
    right = ["x" * length for length in lengths]
    wrong = [text if len(text) > 2 else "" for text in right]
    compared = Comparison(right, right, [wrong, right], [exact_match])
    groups = compared.by_length()
    assert [group.least for group in groups] == [2, 4, 6, 8]
    assert [group.values[0] for group in groups] == [0, 100, 100, 100]
    assert {group.values[1] for group in groups} == {100}

    right = ["the rare one", "the other one", *["the word"] * 20]
    wrong = [text.replace("rare ", "") for text in right]
    compared = Comparison(right, right, [wrong, right], [exact_match])
    assert compared.by_length() == []
    once, *_, often = compared.by_frequency()
    assert (once.least, once.most, once.size) == (1, 1, 2)
    assert once.values == (pytest.approx(200 / 3), 100)
    assert often.most is None and often.values == (100, 100)


def test_words_of_many_lines_are_counted_once(monkeypatch):
    """A sum of counters would copy all words for each line."""

    class Counts(Counter):
        def __add__(self, other):
            raise AssertionError("the time would grow with the square")

    monkeypatch.setattr(comparison, "Counter", Counts)
    right = ["the rare one", *["the word"] * 9]
    compared = Comparison(right, right, [right, right], [exact_match])
    assert sum(group.size for group in compared.by_frequency()) == 21


def test_intervals_show_how_far_they_are(monkeypatch):
    """For a million lines they take minutes."""
    shown = []

    @contextlib.contextmanager
    def progress(*description):
        shown.append(description)
        yield shown.append

    monkeypatch.setattr(resampling, "progress", progress)
    data = ["a", "b"], ["a", "c"]
    with_intervals([exact_match(*data)], [exact_match], *data)
    assert shown == [("Resampling", 1000, "resamples"), 1000]


def test_small_memory_changes_nothing(texts, monkeypatch):
    references, outputs = texts
    metric = metrics_named(["chrf"])[0]
    systems = [line_statistics(metric, each, references) for each in outputs]
    values = bootstrap(systems)
    differences = randomized_differences(systems[:1], systems[1:])
    monkeypatch.setattr(resampling, "_CELLS", 5000)
    done = []
    np.testing.assert_allclose(bootstrap(systems, done.append), values)
    assert len(done) > 10 and sum(done) == values.shape[1]
    np.testing.assert_allclose(
        randomized_differences(systems[:1], systems[1:]), differences
    )


def test_the_interval_of_a_share():
    """Of 400 lines of which half are right: 1.96 standard errors."""
    outputs = ["a", "b"] * 200
    found = line_statistics(exact_match, outputs, ["a"] * 400)
    width = half_width(bootstrap([found])[0])
    assert width == pytest.approx(196 * (0.25 / 400) ** 0.5, rel=0.1)


def test_an_interval_follows_a_value_that_is_rounded_up():
    """44.375 as a mean of F is less than that as a sum of rows."""
    words, lengths = list("abcdea"), "2344222424331121"
    outputs = [" ".join(words[: int(length)]) for length in lengths]
    lengths = "2331353241434111"
    references = [" ".join(words[1 : 1 + int(length)]) for length in lengths]
    score = rouge_1(outputs, references)
    total = line_statistics(rouge_1, outputs, references).total()
    assert score.text.startswith("ROUGE-1 44.38  ") and total < 44.375
    [text] = with_intervals([score], [rouge_1], outputs, references)
    assert text.startswith("ROUGE-1 44.38 ± 12.08  ")


def test_an_interval_of_rounding_errors_is_left_out():
    outputs, references = ["a"] * 12, ["a b"] * 12
    score = rouge_1(outputs, references)
    texts = with_intervals([score], [rouge_1], outputs, references)
    assert texts == [score.text]


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="one output for each"):
        Comparison(["a"], ["a"], [["a"], ["a", "b"]], [exact_match])
    with pytest.raises(ValueError, match="one output for each"):
        Comparison([], [], [[], []], [exact_match])
