"""Any bytes are either rows or one DataError."""

import os
import tempfile

import pytest

from kseq.data import (
    DataError,
    ParallelText,
    read_dialogues,
    read_documents,
)
from kseq.data.source_hashes import source_hashes

hypothesis = pytest.importorskip("hypothesis")
strategies = hypothesis.strategies

PARTS = strategies.one_of(
    strategies.binary(max_size=8),
    strategies.sampled_from(
        [
            *(b"\t", b",", b"\n", b"\r\n", b'"', b'""', b"\0", b"\xef\xbb\xbf"),
            *(
                b"source\ttarget\n",
                b"label,text\n",
                b'{"source": "a", "target":',
            ),
            *(
                b'"b"}\n',
                b'{"label": 1, "text": "',
                b'{"turns": ["a", "',
                b'"}\n',
                b"[",
                b"{",
                b"null",
            ),
            *(b"\\ud800", b"a\tb\n", b"a,b\n", "\u2028".encode(), b"1e999"),
        ]
    ),
)


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
@hypothesis.given(
    content=strategies.lists(PARTS, max_size=12).map(b"".join),
    name=strategies.sampled_from(["a.tsv", "a.csv", "a.jsonl", "a", "a.gz"]),
    columns=strategies.sampled_from([(), ("1", "2"), ("target", "source")]),
)
def test_any_bytes_are_rows_or_an_error(content, name, columns):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        try:
            text = ParallelText(path, columns=columns)
            examined = text.examine()
        except DataError as error:
            assert folder in str(error)
        else:
            report = examined.report
            assert len(examined.pairs) == report.pairs - report.left_out > 0
            assert len(list(text.source_lines())) == report.pairs
        try:
            documents = read_documents(path, columns or ("label", "text"))
        except DataError as error:
            assert folder in str(error)
        else:
            assert all(map(str.isprintable, documents.labels)) or not columns
            assert len(documents.labels) == len(documents.texts) > 0
        try:
            dialogues = read_dialogues(path)
        except DataError as error:
            assert folder in str(error)
        else:
            turns = [*dialogues.lines()]
            assert len(turns) > 1
            assert [" ".join(turn.split()) for turn in turns] == turns


@hypothesis.settings(max_examples=10, deadline=None, derandomize=True)
@hypothesis.given(
    content=strategies.lists(PARTS, max_size=12).map(b"".join),
    name=strategies.sampled_from(["a.tsv", "a.csv"]),
)
def test_python_and_tensorflow_read_the_same(content, name):
    """Or held-out sources would be in training."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content + b"\n")
        text = ParallelText(path, columns=("1", "2"))
        try:
            expected = text.examine().sources.tolist()
        except DataError:
            return
        sources = [source for source, _ in text.pairs().as_numpy_iterator()]
        assert source_hashes(sources).tolist() == expected
