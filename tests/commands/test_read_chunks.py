import itertools
import os
import sys

import pytest

from kseq.commands import read_chunks as module
from kseq.commands.read_chunks import (
    LONGEST_LINE,
    chunk_size,
    counted,
    read_chunks,
    standard_input,
)
from kseq.user_error import UserError


def test_a_closed_input_is_one_message(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed"):
        standard_input()


def test_a_chunk_is_shorter_where_answers_have_many_probabilities():
    assert chunk_size(None, 10) == chunk_size(None) >= 1024
    assert chunk_size(None, 20_000) * 20_000 <= 2**21
    assert chunk_size(None, 2**30) == 1
    assert chunk_size(64, 2**30) == 64


def test_an_input_that_can_only_be_written_is_one_message(
    monkeypatch, tmp_path
):
    """That is what a closed one becomes, see `open_standard_files`."""
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(UserError, match="not open for reading"):
            standard_input()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_utf_16_is_one_message(tmp_path, encoding):
    path = tmp_path / "lines"
    path.write_bytes("One line.\nAnother.\n".encode(encoding))
    with path.open() as file, pytest.raises(UserError) as caught:
        list(read_chunks(file.fileno(), size=10))
    assert str(caught.value).startswith("Standard input is UTF-16 or UTF-32")
    assert "iconv" in str(caught.value)


def test_lines_that_are_not_utf_8_are_counted(tmp_path, capfd):
    text = "grün, \ufffd\n".encode()  # a character that can be there itself
    cut = b"x" * LONGEST_LINE + "ü\n".encode()  # within its last character
    (tmp_path / "input").write_bytes(
        text + text.decode().encode("cp1252", "replace") * 2 + cut
    )
    for is_text in (False, True):
        with open(tmp_path / "input") as file:
            chunks = list(read_chunks(file.fileno(), 2, is_text))
        assert [len(chunk) for chunk in chunks] == [2, 2]
        assert capfd.readouterr().err == is_text * (
            "Standard input: 2 lines are not valid UTF-8; invalid bytes "
            "become U+FFFD.\n"
        )


def test_chunks_come_as_soon_as_they_are_there():
    read, write = os.pipe()
    os.write(write, b"one\ntwo\nthr")
    chunks = read_chunks(read, size=10)
    assert next(chunks) == [b"one", b"two"]
    os.write(write, b"ee\n\n" + b"x" * (LONGEST_LINE - 9))
    assert next(chunks) == [b"three", b""]
    os.write(write, b"y" * 50 + b"\nend")
    os.close(write)
    (last,) = chunks
    assert [len(line) for line in last] == [LONGEST_LINE + 1, 3]
    os.close(read)


def test_chunks_are_bounded(tmp_path):
    (tmp_path / "input").write_bytes(b"a\n" * 25)
    with open(tmp_path / "input") as file:
        sizes = [len(chunk) for chunk in read_chunks(file.fileno(), size=10)]
    assert sizes == [10, 10, 5]


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
    for text, total in ((b"a\nb\nc", 3), (b"a\nb\n\n", 3), (b"\xff", 1)):
        path.write_bytes(text)
        with path.open() as file:
            chunks = read_chunks(file.fileno(), size=2)
            found = list(counted(chunks, file.fileno(), "Predicting"))
        assert b"\n".join(itertools.chain(*found)) == text.removesuffix(b"\n")
        calls = [("Predicting", total, "lines"), *map(len, found), "end"]
        assert shown == calls
        shown.clear()


def test_lines_that_others_have_read_do_not_count(tmp_path, shown):
    (tmp_path / "lines").write_bytes(b"a\nb\nc\n")
    with (tmp_path / "lines").open("rb", buffering=0) as file:
        assert file.read(2) == b"a\n"
        chunks = read_chunks(file.fileno(), size=9)
        assert list(counted(chunks, file.fileno(), "x")) == [[b"b", b"c"]]
    assert shown[0] == ("x", 2, "lines")


def test_lines_of_a_pipe_are_not(shown, monkeypatch):
    reader, writer = os.pipe()
    assert list(counted([["a"]], reader, "Predicting")) == [["a"]]
    assert shown == []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)  # but to a user
    assert list(counted([["a"]], reader, "Predicting")) == [["a"]]
    assert shown == [("Predicting", None, "lines"), 1, "end"]
    os.close(reader)
    os.close(writer)


def test_nothing_is_written_between_answers(tmp_path, shown, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with (tmp_path / "lines").open("w") as file:
        assert list(counted([["a"]], file.fileno(), "x")) == [["a"]]
    assert shown == []
