from typing import get_args

import pytest

from kseq import evaluation
from kseq.command_line.option_types import Metric
from kseq.evaluation import metrics_named, monitored
from kseq.user_error import UserError


def test_every_name_of_the_option_is_a_metric():
    names = get_args(Metric)
    assert metrics_named(names) == [getattr(evaluation, name) for name in names]


@pytest.mark.parametrize("names", [(), ("bleu", "bleau")])
def test_other_names_are_refused(names):
    with pytest.raises(UserError, match="metrics must be some of bleu, "):
        metrics_named(names)


def test_the_first_metric_is_monitored_where_it_is_best():
    assert monitored(("cer", "bleu")) == {"monitor": "val_cer", "mode": "min"}
    best = {"monitor": "val_rouge_l", "mode": "max"}
    assert monitored(("rouge_l", "wer")) == best


@pytest.mark.parametrize("name", get_args(Metric))
def test_the_mode_is_that_of_better_answers(name):
    """Right answers are at least as good as wrong ones, and all different."""
    [metric] = metrics_named([name])
    references = ["the dog runs fast", "a cat sleeps here"]
    right = metric(references, references).value
    wrong = metric(["zz zz zz zz", "zz zz zz zz"], references).value
    assert (right < wrong) == (monitored([name])["mode"] == "min")
