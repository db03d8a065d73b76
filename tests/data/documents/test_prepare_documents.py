import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import kseq.data.documents.document_corpus
from kseq.data import (
    DataError,
    DocumentPreprocessor,
    Tokenizer,
    document_batches,
    piece_prediction_batches,
    piece_vectors,
    prepare_documents,
    read_document_corpus,
)
from kseq.data.documents.dispatch_reports import dispatch_reports
from tests.data.prepare_checks import (
    check_a_tokenizer_that_is_kept,
    check_broken_files,
    check_built_in_corpus,
    check_columns_are_refused,
    check_it_resumes,
    check_number_of_processes,
    check_others_are_refused,
    check_same_batches,
    check_same_error,
    files_of,
)


@pytest.fixture(autouse=True)
def files(here):
    documents = dispatch_reports("train", size=80)
    texts = [*documents.texts, documents.texts[7], "日本 x\x0by", "a<br>b", " "]
    labels = [*documents.labels, "fire", "flood", "fire", "fire"]
    rows = [
        f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True)
    ]
    Path("a.tsv").write_text("".join(rows))
    Path("b.tsv").write_text("".join(rows[5:9]))
    records = [
        {"label": label, "sentences": [text, f"{text} b\tc"]}
        for label, text in zip(labels, texts, strict=True)
    ]
    pairs = [
        f"So?\t{text}\t{label}\n"
        for label, text in zip(labels, texts, strict=True)
    ]
    Path("pairs").write_text("".join(pairs))
    Path("a.jsonl").write_text("\n".join(map(json.dumps, records)))


def prepare(folder="out", train="a.tsv", validation=None, **options):
    options = {"vocab_size": 400, "part_size": 8_000, "log": False, **options}
    return prepare_documents(folder, train, validation, **options)


def tokenized(corpus):
    tokenizer = corpus.tokenizer or Tokenizer.train(corpus.lines(), 400)
    preprocessor = DocumentPreprocessor(tokenizer, in_lines=corpus.in_lines)
    return corpus.tokenized(preprocessor), tokenizer


def batches_of(corpus, ids):
    stream = document_batches(
        ids,
        corpus.train_labels,
        corpus.labels,
        batch_pieces=600,
        seed=3,
        balanced=True,
    )
    return list(itertools.islice(stream.as_numpy_iterator(), 30))


@pytest.mark.parametrize(
    ("train", "validation"),
    [("a.tsv", None), ("a.tsv", "b.tsv"), ("a.jsonl", None), ("pairs", None)],
)
def test_it_is_what_is_read(train, validation):
    columns = "321" if train == "pairs" else ("label", "text")
    corpus = read_document_corpus(train, validation, columns, log=False)
    prepared = prepare(train=train, validation=validation, columns=columns)
    assert prepared.describe() == corpus.describe()
    assert prepared.validation == corpus.validation == prepared.test
    assert prepared.labels == corpus.labels
    assert prepared.in_lines == corpus.in_lines

    (ids, tokenizer), (others, own) = tokenized(prepared), tokenized(corpus)
    assert tokenizer.model == own.model
    assert isinstance(ids.values.values, np.memmap)
    assert isinstance(prepared.train_labels, np.memmap)
    for each, other in ((ids, others), (ids.values, others.values)):
        np.testing.assert_array_equal(each.offsets, other.offsets)
    np.testing.assert_array_equal(ids.flat_values(), others.flat_values())
    classes = [corpus.labels.index(label) for label in corpus.train_labels]
    assert prepared.train_labels.tolist() == classes


def test_batches_are_those_of_a_run_from_the_files():
    prepared, corpus = prepare(), read_document_corpus("a.tsv", log=False)
    (ids, own), (others, _) = tokenized(prepared), tokenized(corpus)
    check_same_batches(batches_of(prepared, ids), batches_of(corpus, others))
    vectors = [piece_vectors(each, own.vocab_size, 8) for each in (ids, others)]
    np.testing.assert_array_equal(*vectors)
    texts = [
        piece_prediction_batches(each, batch_pieces=200, seed=1)
        for each in (ids, others)
    ]
    check_same_batches(
        *(itertools.islice(t.as_numpy_iterator(), 2) for t in texts)
    )


def test_beam_writes_the_same():
    pytest.importorskip("apache_beam")
    prepare("one")
    prepare("two", beam=[])
    assert files_of("one") == files_of("two")


@pytest.mark.slow
def test_number_of_processes_does_not_matter():
    check_number_of_processes(prepare)


def test_it_resumes_where_it_was_interrupted(monkeypatch):
    rows = Path("a.tsv").read_text().splitlines(keepends=True)
    Path("a.tsv").write_text("".join(rows[:20]))
    check_it_resumes(
        *(monkeypatch, prepare),
        lambda steps: {"part_size": 3000 + 500 * steps},
    )
    records = [Path(each, "prepared.json") for each in ("out", "whole")]
    assert records[0].read_bytes() == records[1].read_bytes()


def test_columns_are_refused_without_files():
    check_columns_are_refused(prepare)


def test_other_options_and_files_are_refused():
    corpus, other = check_others_are_refused(
        prepare, read_document_corpus, "b.tsv", "documents"
    )
    with pytest.raises(DataError, match="different options: seed was 1, now 2"):
        prepare(seed=2)
    with pytest.raises(
        DataError, match="is not the file that out was prepared"
    ):
        prepare(train="b.tsv")
    with pytest.raises(DataError, match="not prepared with the tokenizer"):
        corpus.tokenized(DocumentPreprocessor(other))


def test_a_truncated_or_changed_file_is_an_error():
    prepare()
    names = "ids.values", "ids.offsets", "ids.rows", "labels.values"
    check_broken_files(read_document_corpus, names)


def test_errors_are_those_of_reading():
    for content in ("a\tx\n", "a\tx\nb\ty\n", " \n", "a\tx\na\n"):
        Path("c.tsv").write_text(content)
        check_same_error(read_document_corpus, prepare, "c.tsv")


def test_what_is_held_out_is_limited(monkeypatch):
    module = kseq.data.documents.document_corpus
    monkeypatch.setattr(module, "_MOST_HELD_OUT", 6)
    corpus = read_document_corpus("a.tsv", log=False)
    assert prepare().validation == corpus.validation
    assert len(corpus.validation.texts) <= 6


def test_a_tokenizer_that_is_kept():
    check_a_tokenizer_that_is_kept(prepare)


def test_the_built_in_corpus_is_in_memory(monkeypatch):
    check_built_in_corpus(monkeypatch, prepare, "documents.dispatch_reports")
