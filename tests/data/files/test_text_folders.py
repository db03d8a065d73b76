"""Folders whose text files are documents."""

import gzip
import lzma
import os
from collections import Counter
from pathlib import Path

import pytest

from kseq.data import (
    DataError,
    read_document_corpus,
    read_documents,
    read_text_corpus,
    read_texts,
)
from kseq.data.files.text_folders import texts_in_folder
from kseq.sources.first_rows import read_first_rows

pytestmark = pytest.mark.usefixtures("here")


def write(path, content):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content)


def test_books():
    write("books/b.txt", b"\xef\xbb\xbfline\r\n\r\nrest\n\n")
    write("books/a/2.TXT.gz", gzip.compress(b"packed"))
    write("books/a/1.txt.xz", lzma.compress(b"a\xff"))
    for name in ("empty.txt", "c.md", ".d.txt", ".hidden/e.txt", "a/f.txt.bak"):
        write(f"books/{name}", b"?" * (name != "empty.txt"))

    texts = ["a\ufffd\n", "packed\n", "line\n\nrest\n"]
    assert read_texts("books") == texts
    assert read_text_corpus("books").validation == ["st\n"]
    counts = Counter()
    found = [str(path) for path, _ in texts_in_folder("books", counts)]
    assert found == ["a/1.txt.xz", "a/2.TXT.gz", "b.txt"]
    assert counts == {"blank": 1, "invalid": 1}


def test_a_folder_for_each_label():
    write("train/urls_pos.txt", b"of no label\n")
    for n in range(4):
        write(f"train/pos/{n}.txt", b"So good<br />%d\n" % n)
        write(f"train/neg/deep/{n}.txt", b"So bad %d" % n)
    write("train/neg/blank.txt", b" \n")
    write("train/neg/empty.txt", b"")

    documents = read_documents("train")
    assert documents.labels == ["neg"] * 4 + ["pos"] * 4
    assert documents.texts[0] == "So bad 0"
    assert documents.texts[-1] == "So good<br />3"
    corpus = read_document_corpus("train", "train", log=False)
    assert corpus.labels == ("neg", "pos")
    assert corpus.problems[0].startswith(
        "train: 2 of 10 documents are left out: 2 blank"
    )
    with pytest.raises(DataError, match=r"train is a dir.*leave out --columns"):
        read_documents("train", ("stars", "text"))


def test_links_in_circles():
    write("books/a/1.txt", b"one")
    os.symlink("..", "books/a/circle")
    os.symlink("a", "books/b")
    write("other/2.txt", b"two")
    os.symlink(Path("other").absolute(), "books/c")
    assert read_texts("books") == ["one\n", "two\n"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"\x89PNG\n\0", "books/x/a.txt is not text: it contains NUL"),
        ("a.txt", "é\n".encode("utf-16"), "books/x/a.txt is UTF-16 or UTF-32"),
        ("a.txt.gz", b"not gzip", "books/x/a.txt.gz is not a complete .gz fil"),
        ("a.pdf", b"PDF", "books is a directory; expected text files in it, b"),
    ],
)
def test_what_is_no_text(name, content, message):
    write(f"books/x/{name}", content)
    for read in (read_texts, read_documents):
        with pytest.raises(DataError, match=message):
            read("books")


def test_what_cannot_be_read():
    Path("books/x").mkdir(parents=True)
    for read in (read_texts, read_documents):
        with pytest.raises(DataError, match="directory; expected text files"):
            read("books")
    os.symlink("nothing", "books/x/a.txt")
    with pytest.raises(DataError, match=r"Cannot read books/x/a\.txt: No such"):
        read_texts("books")
    os.unlink("books/x/a.txt")
    os.mkfifo("books/x/a.txt")
    with pytest.raises(DataError, match=r"books/x/a\.txt is a pipe"):
        read_documents("books")


def test_folders_are_accepted_where_they_are_read():
    write("books/x/a.txt", b"a text")
    for content in ("text", "documents"):
        read_first_rows(content, ["books"], ["books"])
    for content in ("pairs", "dialogues", "tags"):
        with pytest.raises(DataError, match="books is a directory; give"):
            read_first_rows(content, ["books"])
    with pytest.raises(DataError, match=r"books/NAME\.txt; f|books/x/FOLDER"):
        read_first_rows("documents", ["books/x"])
