import os

import pytest

from kseq.commands import counted as module
from kseq.commands.counted import counted


@pytest.fixture
def shown(monkeypatch):
    """Calls of `progress`, and of what it yields."""
    calls = []

    class Progress:
        def __init__(self, *arguments, **keywords):
            calls.append(arguments)

        def __enter__(self):
            return calls.append

        def __exit__(self, *error):
            calls.append("end")

    monkeypatch.setattr(module, "progress", Progress)
    return calls


def test_lines_of_a_file_are_counted(tmp_path, shown):
    path = tmp_path / "lines"
    path.touch()
    with path.open() as file:
        chunks = counted([["a", "b"], ["c"]], file.fileno(), "Predicting")
        assert list(chunks) == [["a", "b"], ["c"]]
    assert shown == [("Predicting",), 2, 1, "end"]


def test_lines_of_a_pipe_are_not(shown):
    reader, writer = os.pipe()
    assert list(counted([["a"]], reader, "Predicting")) == [["a"]]
    os.close(reader)
    os.close(writer)
    assert shown == []


def test_nothing_is_written_between_answers(tmp_path, shown, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with (tmp_path / "lines").open("w") as file:
        assert list(counted([["a"]], file.fileno(), "x")) == [["a"]]
    assert shown == []
