import json
from pathlib import Path

import numpy as np
import pytest

from kseq.data import (
    DataError,
    Tokenizer,
    WordPreprocessor,
    open_prepared_tags,
    prepare_tags,
    read_tagging_corpus,
    tagging_batches,
)
from kseq.data.tags.journeys import journeys
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
)


@pytest.fixture(autouse=True)
def files(here):
    sentences = journeys("train", size=200)
    rows = [*zip(*sentences, strict=True)]
    rows += [rows[7], ("日本 \u200b x\x07y", ["O", "B-to", "O"]), (" ", [])]
    rows.append(("a " * 501, ["O"] * 501))
    lines = [f"{text}\t{' '.join(tags)}\n" for text, tags in rows]
    Path("a.tsv").write_text("".join(lines))
    Path("b.tsv").write_text("".join(lines[5:9]))
    records = [{"words": text, "tags": tags} for text, tags in rows]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, records)))


def prepare(folder="out", train="a.tsv", validation=None, **options):
    options = {"vocab_size": 330, "part_size": 4000, "log": False, **options}
    return prepare_tags(folder, train, validation, **options)


def tokenized(corpus):
    tokenizer = corpus.tokenizer or Tokenizer.train(corpus.lines(), 330)
    return corpus.tokenized(WordPreprocessor(tokenizer)), tokenizer


@pytest.mark.parametrize(
    ("train", "validation"),
    [("a.tsv", None), ("a.tsv", "b.tsv"), ("a.jsonl", None)],
)
def test_it_is_what_is_read(train, validation):
    corpus = read_tagging_corpus(train, validation, log=False)
    prepared = prepare(train=train, validation=validation)
    assert len(corpus.problems) == (2 if validation else 1)
    assert prepared.describe() == corpus.describe()
    assert prepared.validation == corpus.validation == prepared.test
    assert prepared.tags == corpus.tags

    (ids, tokenizer), (others, own) = tokenized(prepared), tokenized(corpus)
    assert tokenizer.model == own.model
    assert isinstance(ids.values.values, np.memmap)
    assert isinstance(prepared.train_tags.values, np.memmap)
    for each, other in ((ids, others), (ids.values, others.values)):
        np.testing.assert_array_equal(each.offsets, other.offsets)
    np.testing.assert_array_equal(ids.flat_values(), others.flat_values())
    for row, tags in enumerate(corpus.train_tags):
        classes = [corpus.tags.index(tag) for tag in tags]
        assert prepared.train_tags[row].tolist() == classes


def test_batches_are_those_of_a_run_from_the_files():
    streams = [
        tagging_batches(
            *(tokenized(corpus)[0], corpus.train_tags, corpus.tags),
            batch_pieces=300,
            seed=3,
            max_shapes=2,
        )
        for corpus in (prepare(), read_tagging_corpus("a.tsv", log=False))
    ]
    streams = [stream.take(10).as_numpy_iterator() for stream in streams]
    check_same_batches(*streams)


@pytest.mark.slow
def test_number_of_processes_does_not_matter(capfd):
    check_number_of_processes(prepare)
    assert "absl" not in capfd.readouterr().err  # TensorFlow starts in both


def test_it_resumes_where_it_was_interrupted(monkeypatch):
    rows = Path("a.tsv").read_text().splitlines(keepends=True)
    Path("a.tsv").write_text("".join(rows[:100]))
    check_it_resumes(monkeypatch, prepare)


def test_columns_are_refused_without_files():
    check_columns_are_refused(prepare)


def test_other_options_and_files_are_refused():
    corpus, other = check_others_are_refused(
        prepare, read_tagging_corpus, "b.tsv", "sentences"
    )
    with pytest.raises(DataError, match="vocab_size was 330, now 300"):
        prepare(vocab_size=300)
    for preprocessor in (
        WordPreprocessor(other),
        WordPreprocessor(corpus.tokenizer, max_pieces=3),
    ):
        with pytest.raises(DataError, match="not prepared with the tokenizer"):
            corpus.tokenized(preprocessor)


def test_a_truncated_or_changed_file_is_an_error():
    prepare()
    names = "ids.values", "ids.offsets", "ids.rows", "tags.values"
    check_broken_files(open_prepared_tags, names)


def test_errors_are_those_of_reading():
    swapped = "".join(f"x\tT{n}\n" for n in range(30))
    contents = "a\tX\n", "a\tX\na\tY\n", " \n", "a\tX Y\n", swapped
    for content in contents:
        Path("c.tsv").write_text(content)
        check_same_error(read_tagging_corpus, prepare, "c.tsv")
    Path("c.tsv").write_text("a\tX\nb\tnew\n")
    check_same_error(read_tagging_corpus, prepare, "a.tsv", "c.tsv")


def test_a_tokenizer_that_is_kept():
    check_a_tokenizer_that_is_kept(prepare)


def test_the_built_in_corpus_is_in_memory(monkeypatch):
    check_built_in_corpus(monkeypatch, prepare, "tags.journeys")
