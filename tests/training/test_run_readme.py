import sys

import pytest

from kseq.training.run_readme import _command


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("kseq train translate_lstm", ["kseq", "train", "translate_lstm"]),
        ("kseq train ./my page.py", ["kseq", "train", "./my page.py"]),
        (None, ["python", "recipes/translate_lstm.py"]),
    ],
)
def test_the_command_is_the_one_that_was_typed(monkeypatch, command, expected):
    argv = ["recipes/translate_lstm.py", "--steps", "3"]
    monkeypatch.setattr(sys, "argv", argv)
    page = sys.modules["__main__"]
    monkeypatch.setattr(page, "__command__", command, raising=False)
    assert _command() == [*expected, "--steps", "3"]
