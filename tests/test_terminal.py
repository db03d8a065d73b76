import io
import sys
import time

import pytest

from kseq import terminal as module
from kseq.terminal import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "_FIRST", 0.02)
    monkeypatch.setattr(module, "_PAUSE", 0.02)


def test_what_is_quick_says_nothing_in_a_pipe(capsys):
    with progress("Reading", total=2, unit="lines") as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "Reading a b ... 0:00"),
        ({"unit": "lines"}, "Reading a b: 3,000 lines"),
        ({"total": 3000, "unit": "lines"}, "Reading a b: 3,000 of 3,000 lines"),
        ({"total": 3000}, "Reading a b: 100 %"),
    ],
)
def test_lines_in_a_pipe(quick, capsys, settings, line):
    lines = []
    with progress("Reading a\nb", **settings) as advance:
        advance(3000)
        while lines.count(line) < 2:
            time.sleep(0.01)
            out, err = capsys.readouterr()
            lines += err.splitlines()
            assert out == ""
    assert lines[-1] == line


def test_the_time_left(quick, capsys):
    with progress("Reading", total=4, unit="lines") as advance:
        advance(1)
        time.sleep(0.1)
    line = capsys.readouterr().err.splitlines()[0]
    assert line == "Reading: 1 of 4 lines, 0:00 left"


def test_the_time_so_far_where_there_is_nothing_to_count():
    start = time.monotonic() - 65
    line = module._line("Loading", 0, None, "", start)
    assert line == "Loading ... 1:05"


def test_a_bar_on_a_terminal_that_is_taken_away(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress("Reading [b]x", total=4, unit="lines") as advance:
        advance(4)
    shown = terminal.getvalue()
    assert "Reading [b]x" in shown
    assert "4 of 4 lines" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the line is cleared


def test_an_error_goes_through_and_the_terminal_is_restored(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyError), progress("Reading"):
        raise KeyError
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is shown


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_without_standard_error(monkeypatch, quick, stderr):
    if stderr:
        stderr = io.StringIO()
        stderr.close()
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress("Reading") as advance:
        advance(1)
        time.sleep(0.05)


def test_a_negative_total_is_refused():
    with pytest.raises(ValueError, match="Received: total=-1"):
        progress("Reading", total=-1).__enter__()
