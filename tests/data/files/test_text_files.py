"""What is no file is refused at once, by every reader."""

import bz2
import gzip
import lzma
import os
import socket
import stat

import pytest
import zstandard

from kseq.data import (
    DataError,
    ParallelText,
    read_corpus,
    read_document_corpus,
    read_documents,
)
from kseq.data.files import text_files


def read_pairs(path):
    read_corpus([path])


def read_target(path):
    ParallelText("a.tsv", path).check()


def read_as_data(path):
    ParallelText(path).pairs()


READERS = [
    read_pairs,
    read_target,
    read_as_data,
    read_documents,
    read_document_corpus,
]


@pytest.fixture
def paths(here):
    """What cannot be read, and what is said of it."""
    (here / "a.tsv").write_text("a\tb\n")
    os.mkfifo("fifo")
    os.mkfifo("fifo.jsonl.gz")
    (here / "link").symlink_to("fifo")
    (here / "loop").symlink_to("loop")
    (here / "folder.tsv").mkdir()
    read, write = os.pipe()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    pipe = "is a pipe, which can be read only once; write it to a file first"
    yield {
        "fifo": pipe,
        "fifo.jsonl.gz": pipe,
        "fif[o]": pipe,
        "link": pipe,
        f"/dev/fd/{read}": pipe,
        "/dev/zero": "is a device",
        "/dev/stdin/x": "There is no file",
        "socket": "is a socket",
        "folder.tsv": "is a directory",
        "folder*": "is a directory",
        "loop": "Cannot read loop: Too many levels",
        "": "found an empty one",
        "a\0": "There is no file",
        "x" * 5000: "There is no file",
    }
    listener.close()
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_is_refused_at_once(read, paths):
    for path, message in paths.items():
        with pytest.raises(DataError, match=message) as error:
            read(path)
        assert len(str(error.value)) < 700
        assert str(error.value).count("\n") == 0


@pytest.mark.parametrize("read", READERS)
def test_an_unreadable_file_is_refused(read, paths, monkeypatch):
    monkeypatch.setattr(text_files.os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"Cannot read a\.tsv: Permission"):
        read("a.tsv")


def test_a_file_that_cannot_be_looked_at_is_refused(paths, monkeypatch):
    real = os.stat

    def refuse(path, **options):
        if path == "a.tsv" and stat.S_ISREG(real(path).st_mode):
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr(text_files.os, "stat", refuse)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    with pytest.raises(DataError, match=r"Cannot read a\.tsv: Permission"):
        read_documents("a.tsv")


def test_what_is_wrong_with_a_later_file_is_said_first(paths):
    with pytest.raises(DataError, match="fifo is a pipe"):
        read_corpus(["a.tsv", "a.tsv", "fifo", "a.tsv"][:1], ["fifo"])
    with pytest.raises(DataError, match="fifo is a pipe"):
        read_document_corpus("a.tsv", "fifo")


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le"])
def test_another_encoding_is_refused(read, encoding, paths):
    text = "label\ttext\npos\tso good\nneg\tso bad\n"
    with open("a.tsv", "wb") as file:
        file.write(text.encode(encoding))
    with pytest.raises(DataError, match=r"a\.tsv is UTF-16 or .*iconv"):
        read("a.tsv")


def test_what_exists_is_never_a_pattern(tmp_path):
    for folder in ("data [1]", "data 1", "other"):
        (tmp_path / folder).mkdir()
        for name in ("a", "b"):
            (tmp_path / folder / f"{name}.txt").write_text(name)
    (tmp_path / "data [1]" / "[ab].txt").write_text("literal")

    def found(pattern):
        paths = text_files.matching_files(tmp_path / pattern)
        return [os.path.relpath(path, tmp_path) for path in paths]

    assert found("data [1]/[ab].txt") == ["data [1]/[ab].txt"]
    assert found("data [1]/?.txt") == ["data [1]/a.txt", "data [1]/b.txt"]
    assert found("data 1/[ab].txt") == ["data 1/a.txt", "data 1/b.txt"]
    assert found("[d]ata [12]/a.txt") == ["data 1/a.txt"]


def test_names_of_files_that_are_no_text(tmp_path):
    for name in (b"a\xff[1].txt", b"-b\n.txt"):
        path = tmp_path / os.fsdecode(name)
        path.write_text("one\ntwo\n")
        text = ParallelText(path, path)
        assert text.check().pairs == 2
        assert len(list(text.pairs())) == 2
        path.write_text("")
        with pytest.raises(DataError, match="is empty") as caught:
            text.check()
        assert str(caught.value).isprintable()


def test_a_dash_is_not_standard_input():
    with pytest.raises(DataError, match="Standard input can be read only once"):
        text_files.matching_files("-")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.tsv", gzip.compress(b"a\tb\n"), "gz"),
        ("a.tsv.gz", gzip.compress(gzip.compress(b"a\tb\n")), "gz"),
        ("a.jsonl", bz2.compress(b"a\tb\n"), "bz2"),
        ("a.csv", lzma.compress(b"a\tb\n"), "xz"),
        ("a", zstandard.compress(b"a\tb\n"), "zst"),
        ("a.txt", b"PAR1\x15\4a\tb\n", "parquet"),
        ("a.txt", b"PK\3\4\n\0a\tb\n", "zip or .npz"),
    ],
)
def test_a_name_that_does_not_say_what_is_in_it(tmp_path, name, content, kind):
    """Its bytes would be read as text that is not UTF-8."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"it begins as a \.{kind} file"):
        ParallelText(tmp_path / name).check()


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz", "a.txt.bz2"])
def test_a_line_that_would_fill_the_memory(tmp_path, monkeypatch, name):
    """A compressed file of a megabyte may have one of a gigabyte."""
    monkeypatch.setattr(text_files, "_LARGEST_LINE", 20)
    path = tmp_path / name
    opened = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    for size, is_read in ((19, True), (20, False), (10_000, False)):
        with opened.get(path.suffix, open)(path, "wb") as file:
            file.write(b"a line\n" + b"a" * (size - 1) + b"\nthe last\n")
        if is_read:
            lines = [line.text for line in text_files.read_lines(path)]
            assert lines == [b"a line", b"a" * (size - 1), b"the last"]
            continue
        with pytest.raises(DataError, match="line 2: expected a line of at"):
            list(text_files.read_lines(path))
