import importlib.util
from typing import get_args

import pytest

from kseq import evaluation
from kseq.command_line.option_types import Metric
from kseq.evaluation import metrics_named, monitored
from kseq.user_error import UserError

PACKAGES = {"bleu_ja": "MeCab", "bleu_ko": "mecab_ko"} | {
    f"rouge_{name}_stem": "nltk" for name in "12l"
}
NAMES = [
    name
    for name in get_args(Metric)
    if importlib.util.find_spec(PACKAGES.get(name, "sacrebleu"))
    and name != "comet"  # see test_comet
]


def test_every_name_of_the_option_is_a_metric():
    found = metrics_named(NAMES)
    assert [metric.__name__ for metric in found] == NAMES
    for metric in found:
        assert getattr(evaluation, metric.__name__, metric) is metric


def test_a_repeated_name_counts_once():
    """Scores have the names of metrics; a report pairs both."""
    found = metrics_named(["chrf", "bleu", "chrf"])
    assert [metric.__name__ for metric in found] == ["chrf", "bleu"]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named(name, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install '\w+\[\w+\]'"):
        metrics_named([name])


@pytest.mark.parametrize(
    ("name", "reference", "output", "least"),
    [
        ("bleu_zh", "猫坐在垫子上。", "猫坐在椅子上。", 30),
        ("bleu_char", "猫坐在垫子上。", "猫坐在椅子上。", 30),
        ("bleu_intl", "a cat-like thing's end", "a cat like thing's end", 30),
    ],
)
def test_tokenizers_of_other_languages(name, reference, output, least):
    """To 13a, a Chinese sentence is one word."""
    [metric] = metrics_named([name])
    score = metric([output], [reference])
    assert least < score.value < 100
    assert f"|tok:{name.removeprefix('bleu_')}|" in score.signature
    assert score.value != metrics_named(["bleu"])[0]([output], [reference])[0]


@pytest.mark.parametrize("names", [(), ("bleu", "bleau")])
def test_other_names_are_refused(names):
    with pytest.raises(UserError, match="metrics must be some of bleu, "):
        metrics_named(names)


def test_the_first_metric_is_monitored_where_it_is_best():
    assert monitored(("cer", "bleu")) == {"monitor": "val_cer", "mode": "min"}
    best = {"monitor": "val_rouge_l", "mode": "max"}
    assert monitored(("rouge_l", "wer")) == best


@pytest.mark.parametrize("name", NAMES)
def test_the_mode_is_that_of_better_answers(name):
    """Right answers are at least as good as wrong ones, and all different."""
    [metric] = metrics_named([name])
    references = ["the dog runs fast", "a cat sleeps here"]
    right = metric(references, references).value
    wrong = metric(["zz zz zz zz", "zz zz zz zz"], references).value
    assert (right < wrong) == (monitored([name])["mode"] == "min")
