"""Any bytes are either rows or one DataError."""

import os
import random
import resource
import tempfile
import time

import pytest
import tensorflow as tf

from kseq.data import (
    DataError,
    ImagePreprocessor,
    ParallelText,
    read_corpus,
    read_dialogue_corpus,
    read_dialogues,
    read_document_corpus,
    read_documents,
    read_tagging_corpus,
    read_text_corpus,
)
from kseq.data.files.media_folder import read_picture
from kseq.data.files.named_texts import CAPTIONS, TRANSCRIPTS, read_named_texts
from kseq.data.files.source_hashes import source_hashes
from kseq.data.speech.recordings import read_recording
from kseq.sources.first_rows import read_first_rows

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
    name=strategies.sampled_from(
        ["a.tsv", "a.csv", "a.jsonl", "a", "a.gz", "a.bz2", "a.xz", "a.zst"]
    ),
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


def read_table(kind):
    """As `kseq check` and training read: the first rows, then all."""

    def read(path, columns):
        read_first_rows(kind, [path], (), columns)
        if kind == "text":
            return read_text_corpus(path, *columns, log=False)
        if kind == "dialogues":
            return read_dialogue_corpus(path, log=False)
        columns = [columns] if columns else []
        if kind == "pairs":
            return read_corpus([path], None, *columns, log=False)
        if kind == "documents":
            return read_document_corpus(path, None, *columns, log=False)
        if kind == "tags":
            return read_tagging_corpus(path, None, *columns, log=False)
        known = {"captions": CAPTIONS, "transcripts": TRANSCRIPTS}[kind]
        return read_named_texts(path, *columns, known=known)

    return read


@pytest.fixture(scope="module")
def readers():
    """Functions of a path and columns; a good picture is also decoded."""
    preprocess = tf.function(
        lambda images: ImagePreprocessor(1, 4, 6)(images).blank,
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )

    def picture(path, columns):
        assert not preprocess([read_picture(path)]).numpy().any()

    def recording(path, columns):
        read_recording(path, 16_000, resample=True, sounds=True)

    kinds = ("pairs", "documents", "tags", "dialogues", "text")
    tables = {
        kind: read_table(kind) for kind in (*kinds, "captions", "transcripts")
    }
    return {**tables, "picture": picture, "recording": recording}


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        (60, 1),
        pytest.param(1000, random.randrange(10**6), marks=pytest.mark.slow),
    ],
)
def test_a_changed_file_is_read_or_refused(readers, tmp_path, count, seed):
    """By all readers, without a traceback, a hang or a gigabyte."""
    for library in ("pyarrow", "zstandard", "soundfile", "soxr", "PIL"):
        pytest.importorskip(library)
    from tests.data.files_of_all_kinds import changed, files

    good = files()
    for kind, name, columns, content in good:
        path = tmp_path / name
        path.write_bytes(content)
        if not name.endswith((".gif", ".webp")):
            readers[kind](str(path), columns)
    draw = random.Random(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for number in range(count):
        kind, name, columns, content = good[number % len(good)]
        path = tmp_path / name
        path.write_bytes(changed(content, draw))
        start = time.process_time()
        try:
            readers[kind](str(path), columns)
        except DataError as error:
            refused += 1
            assert name in str(error)
            assert len(str(error)) < 1000
        except Exception as error:
            where = f"file {number} of the seed {seed}, {kind}, {name}"
            raise AssertionError(where) from error
        assert time.process_time() - start < 20
    assert count / 10 < refused < count
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert most < 2**20  # KiB
