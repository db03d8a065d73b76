import gc
import os
import pty
import sys
import tempfile

from kseq import start_keras
from kseq.start_keras import quiet_stderr

START_UP = b"I0000 cpu.cc:1] oneDNN custom operations are on. You may see\n"


def test_a_terminal_shows_a_notice_until_the_end():
    shown, terminal = pty.openpty()
    kept = os.dup(2)
    os.dup2(terminal, 2)
    try:
        with quiet_stderr(notice="Wait ..."):
            os.write(2, START_UP + b"a warning\n")
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(shown, 999)
    finally:
        os.dup2(kept, 2)
        for number in (kept, terminal, shown):
            os.close(number)
    assert text == b"Wait ...\r        \ra warning\r\n"


def test_elsewhere_there_is_no_notice(capfd):
    with quiet_stderr(notice="Wait ..."):
        os.write(2, START_UP + b"a warning\n")
    assert capfd.readouterr().err == "a warning\n"


def test_without_standard_error_or_a_temporary_directory(monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", "/no-such-directory")
    with quiet_stderr():
        os.write(2, START_UP)
    assert capfd.readouterr().err.encode() == START_UP
    monkeypatch.undo()
    monkeypatch.setattr(sys, "stderr", None)
    with quiet_stderr():
        os.write(2, START_UP)
    assert capfd.readouterr().err.encode() == START_UP


def test_garbage_is_collected_again(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras")
    with start_keras._no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()
