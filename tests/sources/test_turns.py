"""Lines of dialogues."""

import pytest

from kseq.sources.turns import TURNS
from kseq.user_error import UserError


def read(lines):
    return TURNS.read_lines(None, None)(lines)


def test_turns_are_between_tabs():
    lines = [b"Hi!\tHello.\tHow are you?", b"", b"Good. ", b'{"a": 1}']
    assert read(lines) == [
        [b"Hi!", b"Hello.", b"How are you?"],
        [b""],
        [b"Good."],
        [b'{"a": 1}'],
    ]


def test_a_line_of_json_is_one_of_a_file_for_training():
    lines = [
        b'{"turns": ["Hi!", "a\\tb"]}\r',
        b' {"id": 3, "turns": []}',
        b'{"turns": ["Stra\xc3\x9fe", "\\ud800"]}',
    ]
    assert read(lines) == [
        [b"Hi!", b"a\tb"],
        [],
        ["Straße".encode(), "\ufffd".encode()],
    ]


@pytest.mark.parametrize(
    "line",
    [
        b'{"turns": "Hi!"}',
        b'{"turns": 3}',
        b'{"turns": [3]}',
        b'{"turns": null}',
        b'{"turns": {"a": "b"}}',
        b'{"a": "turns"}{',
        b'{"turns": ["Hi!"]',
        b'{"a": {"turns": ["Hi!"]}}',
        b'{"turns": ["\xff"]}',
        b'{"turns": ' + b"[" * 10_000,
    ],
)
def test_what_is_broken_is_refused(line):
    with pytest.raises(UserError, match=r'line 2: expected .*"turns", a list'):
        read([b"Hi!", line])


@pytest.mark.parametrize(
    ("given", "expected"),
    [("a", ["a"]), (("a", "b"), ["a", "b"]), ([], []), (None, None), (1, 1)],
)
def test_turns_of_python(given, expected):
    """What is no dialogue is named by the check of all inputs."""
    assert TURNS.from_python(given) == expected
