import gzip
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import kseq.data.running_text.text_corpus
import kseq.data.running_text.text_documents
from kseq.data import (
    DataError,
    Tokenizer,
    open_prepared_text,
    prepare_text,
    read_text_corpus,
    running_text_batches,
)
from kseq.data.files.prepared_folder import PreparedFolder
from tests.data.prepare_checks import check_same_error

ODD = "".join(
    [
        "\n\n \u3000\n first\r\nline\r",
        "\n</s> <s>\u2581x\n",
        "a\u2028b\x85c\n",
        "x" * 300,
        "\n日本\tü\n\n",
    ]
)


@pytest.fixture(autouse=True)
def files(here, monkeypatch):
    # Also a small file is read in chunks.
    monkeypatch.setattr(kseq.data.running_text.text_documents, "_CHUNK", 40)


def words(count, seed=1):
    draw = random.Random(seed)
    lines = [" ".join(draw.choices("abcdefgh", k=9)) for _ in range(count)]
    return "\n".join(lines) + "\n"


def write_files():
    """Files with one document and with several, some of them blank."""
    Path("poem.txt").write_text(words(30) + ODD, newline="")
    Path("poem.txt.gz").write_bytes(gzip.compress((ODD + words(9)).encode()))
    Path("bytes.txt").write_bytes(b"\xef\xbb\xbfa\xff\xc3\nb\xc3\r\xa9\n" * 9)
    texts = [words(3), " ", words(2, 2), "\n", "x", words(40), "y\n\nz"]
    records = [json.dumps({"title": "t", "text": text}) for text in texts]
    Path("books.jsonl").write_text("\n".join(records))
    Path("folder/inner").mkdir(parents=True)
    Path("folder/inner/a.txt").write_text(words(9))
    Path("folder/b.txt").write_text(words(7) + "\n\n")
    Path("folder/c.txt").write_text(" \n")


FILES = ["poem.txt", "poem.txt.gz", "bytes.txt", "books.jsonl", "folder"]
FILES += ["*.txt"]


def check_same(prepared, corpus, **tokenizer):
    """What is prepared is what is read, and is tokenized in memory."""
    expected = Tokenizer.train(
        corpus.lines(), **{"vocab_size": 8000, **tokenizer}, verbatim=True
    )
    assert prepared.tokenizer.model == expected.model
    ids = corpus.tokenized(expected)
    assert prepared.ids.tolist() == ids.tolist()
    assert prepared.validation == prepared.test == corpus.validation
    assert prepared.facts == corpus.facts
    assert prepared.problems == corpus.problems


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("part_size", [30, 10**6])
def test_it_is_what_is_read(path, part_size):
    write_files()
    corpus = read_text_corpus(path, log=False)
    given = {"model_type": "char"}
    check_same(prepare_text("out", path, part_size=part_size), corpus, **given)
    check_same(read_text_corpus("out", log=False), corpus, **given)


@pytest.mark.parametrize("characters", range(60, 140, 7))
def test_the_end_is_held_out_wherever_it_begins(characters, monkeypatch):
    write_files()
    module = kseq.data.running_text.text_corpus
    monkeypatch.setattr(module, "_MOST_HELD_OUT", characters)
    corpus = read_text_corpus("books.jsonl", log=False)
    held_out = sum(map(len, corpus.validation))
    assert held_out == min(characters, held_out)
    prepared = prepare_text("out", "books.jsonl", part_size=characters)
    check_same(prepared, corpus, model_type="char")


def test_validation_files_and_pieces():
    write_files()
    given = {"vocab_size": 270, "model_type": "bpe"}
    prepared = prepare_text(
        *("out", "folder", "books.jsonl"),
        **{"vocab_size": 270, "tokens": "bpe"},
    )
    corpus = read_text_corpus("folder", "books.jsonl", log=False)
    check_same(prepared, corpus, **given)
    assert prepared.ids.dtype == np.uint16
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "ids.values",
        "prepared.json",
        "source.model",
        "validation.sizes",
        "validation.text",
    ]


@pytest.mark.parametrize("part_size", [30, 10**6])
def test_documents_that_are_also_in_training(part_size):
    write_files()
    again = json.dumps({"text": words(40).strip()})  # in several chunks
    Path("b.jsonl").write_text("\n".join([again, '{"text": "x y"}', again]))
    Path("more").mkdir()
    Path("more/a.txt").write_text(words(40))
    Path("more/copy.txt").write_text("\n" + words(30) + ODD, newline="")
    lines = [json.dumps({"text": text}) for text in ["q"] * 12]
    Path("alike.jsonl").write_text("\n".join(lines))
    for number, (train, validation, counts) in enumerate(
        [
            ("books.jsonl", "b.jsonl", ["2 of 3"]),
            ("books.jsonl", "more/a.txt", ["1 of 1"]),
            ("more", "poem.txt", ["1 of 1"]),
            ("poem.txt", "more/a.txt", []),
            ("alike.jsonl", None, ["2 of 2"]),
            ("books.jsonl", None, []),
        ]
    ):
        corpus = read_text_corpus(train, validation, log=False)
        expected = [
            f"{each} validation documents are also in training: scores on them "
            "will be too high."
            for each in counts
        ]
        repeated = [line for line in corpus.problems if "training" in line]
        assert repeated == expected
        prepared = prepare_text(
            f"out{number}", train, validation, part_size=part_size, log=False
        )
        assert prepared.problems == corpus.problems


@pytest.mark.slow  # each process imports TensorFlow
def test_number_of_processes_does_not_matter():
    Path("a.txt").write_text(words(300))
    for folder, processes in (("one", 1), ("two", 2)):
        prepare_text(folder, "a.txt", processes=processes, part_size=500)
    for file in Path("one").iterdir():
        assert file.read_bytes() == Path("two", file.name).read_bytes()


def test_beam_writes_the_same_bytes():
    pytest.importorskip("apache_beam", reason="needs the extra beam")
    Path("a.txt").write_text(words(300))
    for folder, beam in (("one", None), ("two", [])):
        prepare_text(folder, "a.txt", beam=beam, part_size=500)
    for file in Path("one").iterdir():
        assert file.read_bytes() == Path("two", file.name).read_bytes()


def test_it_resumes_after_each_step(monkeypatch):
    """An error after some parts; the same call tokenizes the others."""
    Path("a.txt").write_text(words(100))
    module = sys.modules["kseq.data.running_text.prepare_text"]
    tokenize, done = module.tokenize_text_part, []

    def fail(job):
        if job.part.endswith("2"):
            raise RuntimeError("interrupted")
        done.append(Path(job.part).name)
        tokenize(job)

    with monkeypatch.context() as patch:
        patch.setattr(module, "tokenize_text_part", fail)
        with pytest.raises(RuntimeError, match="interrupted"):
            prepare_text("out", "a.txt", part_size=300)
    with pytest.raises(DataError, match="not complete: start the same"):
        open_prepared_text("out")
    with monkeypatch.context() as patch:
        # The text and the tokenizer are there already.
        patch.setattr(module, "_read", None)
        patch.setattr(module.Tokenizer, "train", None)
        resumed = prepare_text("out", "a.txt")
    assert done == ["000000", "000001"]
    check_same(resumed, read_text_corpus("a.txt", log=False), model_type="char")


def test_changed_files_and_options():
    Path("a.txt").write_text(words(30))
    prepare_text("out", "a.txt")
    Path("a.txt").rename("b.txt")
    assert len(prepare_text("out", "b.txt").ids) > 300
    with pytest.raises(
        DataError, match="different options: tokens was char, now"
    ):
        prepare_text("out", "b.txt", tokens="bpe")
    with pytest.raises(DataError, match="from different files"):
        prepare_text("out", "b.txt", "b.txt")
    Path("b.txt").write_text(words(30, 2))
    with pytest.raises(DataError, match=r"b\.txt is not the file that out"):
        prepare_text("out", "b.txt")


def test_a_folder_has_its_tokenizer():
    Path("a.txt").write_text(words(30))
    prepared = prepare_text("out", "a.txt")
    other = Tokenizer.train([words(30, 2)], 20, "char", verbatim=True)
    with pytest.raises(DataError, match="not prepared with the tokenizer"):
        prepared.tokenized(other)
    with pytest.raises(DataError, match="not prepared with the tokenizer"):
        prepare_text("new", "out", tokenizer=other)
    with pytest.raises(
        DataError, match="different options: tokenizers was None"
    ):
        prepare_text("out", "a.txt", tokenizer=other)
    own = prepared.tokenizer
    for folder, train in (("out", "a.txt"), ("b", "a.txt"), ("new", "out")):
        again = prepare_text(folder, train, tokenizer=own, tokens="bpe")
        assert again.ids.tolist() == prepared.ids.tolist()
    assert not Path("new").exists()
    built_in = prepare_text("new", tokens="char")
    assert not Path("new").exists()
    assert prepare_text("new", tokenizer=built_in.tokenizer) == built_in
    with pytest.raises(DataError, match="validation is part of a prepared"):
        read_text_corpus("out", "a.txt")
    with pytest.raises(DataError, match="column is part of a prepared"):
        prepare_text("new", "out", column="body")
    with pytest.raises(DataError, match="holds 'text'; expected 'pairs'"):
        PreparedFolder("out").record("pairs")


def test_broken_folders():
    Path("a.txt").write_text(words(30))
    prepare_text("out", "a.txt")
    record = Path("out/prepared.json")
    content = json.loads(record.read_text())
    for key, value in (("arrays", {}), ("facts", 5), ("arrays", {"ids": 1})):
        record.write_text(json.dumps({**content, key: value}))
        with pytest.raises(DataError, match="is broken"):
            open_prepared_text("out")
    record.write_text(json.dumps(content))
    sizes = Path("out/validation.sizes")
    sizes.write_bytes(sizes.read_bytes()[::-1])
    with pytest.raises(DataError, match=r"validation.* is broken"):
        open_prepared_text("out")


@pytest.mark.parametrize("content", [" \n\n", "", None])
def test_errors_are_those_of_reading(content):
    if content is not None:
        Path("a.txt").write_text(content)
    check_same_error(read_text_corpus, prepare_text, "a.txt")


def test_batches_from_a_file_are_those_from_memory():
    Path("a.txt").write_text(words(100))
    prepared = prepare_text("out", "a.txt")
    given = {"batch_size": 3, "length": 20, "seed": 1}
    both = (
        running_text_batches(ids, **given)
        for ids in (prepared.ids, np.array(prepared.ids, np.int32))
    )
    for one, other in zip(*(batches.take(30) for batches in both), strict=True):
        assert one[1].dtype == other[1].dtype == np.int32
        np.testing.assert_array_equal(one[1], other[1])
        np.testing.assert_array_equal(
            one[0]["target_ids"], other[0]["target_ids"]
        )
