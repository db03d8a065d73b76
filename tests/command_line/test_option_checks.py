"""Options of commands that do not fit each other."""

import argparse

import pytest

from kseq.command_line.option_checks import check_command
from kseq.user_error import UserError


@pytest.mark.parametrize("command", ["chat", "predict"])
@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ({"seed": 1}, {"predict": "--seed needs --sample"}),
        ({"seed": 1, "top_k": 3}, {"predict": "needs --sample"}),
        ({"temperature": 2.0}, {"predict": "--temperature needs --sample"}),
        ({"top_p": 0.5, "seed": 1}, {"predict": "needs --sample"}),
        (
            {"temperature": 2.0, "greedy": True},
            dict.fromkeys(["chat", "predict"], "--temperature needs --sample"),
        ),
        (
            {"seed": 1, "beam_size": 3},
            dict.fromkeys(["chat", "predict"], "--seed needs --sample"),
        ),
        ({"sample": True, "seed": 1}, {}),
    ],
)
def test_chat_samples_unless_a_search_is_chosen(command, given, needs):
    others = ("attention", "word_probabilities", "paragraphs", "markup")
    others += ("prefix", "glossary", "scores", "batch_size", "weights")
    options = argparse.Namespace(
        **dict.fromkeys((*others, "stream", "mbr", "json"), None),
        **{"command": command, "n_best": 1, "path": "run", **given},
    )
    if command in needs:
        with pytest.raises(UserError, match=needs[command]):
            check_command(options)
    else:
        check_command(options)
