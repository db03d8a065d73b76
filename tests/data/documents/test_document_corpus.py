import importlib
import json
import logging
import os
import subprocess
import sys
from collections import Counter

import pytest

from kseq.data.documents.dispatch_reports import dispatch_reports
from kseq.data.documents.document_corpus import read_document_corpus
from kseq.data.files.data_error import DataError


def table(pairs):
    return "".join(f"{label}\t{text}\n" for label, text in pairs).encode()


def numbered(**counts):
    """As many different documents of each label."""
    return [
        (label, f"{label} {number}")
        for label, count in counts.items()
        for number in range(count)
    ]


def pairs_of(documents):
    return list(zip(documents.labels, documents.texts, strict=True))


def test_without_files_it_is_the_planted_reports(monkeypatch):
    # Of few: they are drawn twice, and those of all splits before a split.
    module = importlib.import_module("kseq.data.documents.dispatch_reports")
    sizes = {split: size // 20 for split, size in module.SIZES.items()}
    monkeypatch.setattr(module, "SIZES", sizes)
    corpus = read_document_corpus()

    assert corpus.train == dispatch_reports("train")
    assert corpus.validation == dispatch_reports("validation")
    assert corpus.test == dispatch_reports("test")
    assert len(corpus.train.texts) == sizes["train"]
    assert corpus.labels == ("ambulance", "fire", "flood", "police")


def test_two_files_are_training_and_validation(write, caplog):
    caplog.set_level(logging.WARNING)
    train = [("5", "So good."), ("1", "No!"), ("5", "Yes."), ("1", "Mud.")]
    held_out = [("1", "Dirt.")]

    corpus = read_document_corpus(
        write("train.tsv", table(train)), write("dev.tsv", table(held_out))
    )

    assert pairs_of(corpus.train) == train
    assert pairs_of(corpus.validation) == held_out
    assert corpus.test == corpus.validation
    assert caplog.text == ""


def test_options_name_the_columns_of_both_files(write):
    header = b"id\tstars\tbody\n"
    corpus = read_document_corpus(
        write("train.tsv", header + b"1\t5\tgood\n2\t1\tbad\n"),
        write("dev.tsv", header + b"3\t5\tfine\n"),
        columns=("stars", "body"),
    )

    assert pairs_of(corpus.train) == [("5", "good"), ("1", "bad")]
    assert pairs_of(corpus.validation) == [("5", "fine")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["pos", "neg", "mixed"], ("mixed", "neg", "pos")),
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["1", "01", "2"], ("01", "1", "2")),
    ],
)
def test_labels_are_sorted(write, names, expected):
    pairs = [(name, f"{name} {n}") for name in names for n in range(2)]

    assert read_document_corpus(write("a", table(pairs))).labels == expected


def test_one_label_is_an_error(write):
    path = write("a.tsv", table(numbered(pos=3)))

    with pytest.raises(DataError, match=r"a\.tsv: .*two labels.*only 'pos'"):
        read_document_corpus(path)


def test_labels_seen_only_in_validation_are_one_error(write):
    train = write("a.tsv", table(numbered(pos=2, neg=2)))
    held_out = write("b.tsv", table(numbered(pos=1, odd=2, even=1)))

    with pytest.raises(
        DataError,
        match=r"b\.tsv has labels that .*a\.tsv does not have: 'even', 'odd'",
    ):
        read_document_corpus(train, held_out)
    assert read_document_corpus(
        train, write("c.tsv", table([("pos", "x")]))
    ).labels == ("neg", "pos")


def test_texts_and_sentences_do_not_go_together(write):
    texts = write("a.tsv", table(numbered(pos=2, neg=2)))
    records = [{"label": x, "sentences": ["b"]} for x in ("pos", "neg")]
    sentences = write("b.jsonl", "\n".join(map(json.dumps, records)).encode())

    with pytest.raises(
        DataError, match=r"a\.tsv has texts, .*b\.jsonl has sentences"
    ):
        read_document_corpus(texts, sentences)
    with pytest.raises(
        DataError, match=r"b\.jsonl has sentences, .*a\.tsv has texts"
    ):
        read_document_corpus(sentences, texts)


def test_validation_alone_is_an_error(write):
    with pytest.raises(DataError, match="validation needs train"):
        read_document_corpus(validation=write("a", table(numbered(a=2, b=2))))


def test_files_are_checked(write, tmp_path):
    good = write("good", table(numbered(a=2, b=2)))

    with pytest.raises(DataError, match="There is no file"):
        read_document_corpus(tmp_path / "missing")
    with pytest.raises(DataError, match="There is no file"):
        read_document_corpus(good, tmp_path / "missing")


def test_validation_text_in_train_is_counted(write, caplog):
    train = write("a.tsv", table([("x", "1"), ("x", "2"), ("y", "3")]))
    held_out = write(
        "b.tsv", table([("x", "1"), ("y", "2 "), ("y", "2"), ("x", "4")])
    )

    corpus = read_document_corpus(train, held_out)

    assert len(corpus.validation.texts) == 4
    assert caplog.text.count("3 of 4 validation documents") == 1
    assert "scores on them will be too high" in caplog.text


def test_repeated_documents_are_counted(write, caplog):
    pairs = [("x", "1"), ("x", "1"), ("y", "1 "), ("y", "2"), ("y", "2")]
    path = write("a.tsv", table(pairs))

    caplog.set_level(logging.INFO)
    read_document_corpus(path, write("b.tsv", table([("x", "3")])))

    assert caplog.text.count("documents: 3 of 5, 1 of them with a diff") == 1


def test_a_label_of_one_document_is_named(write, caplog):
    """Such as the name of a column that was not told from a label."""
    pairs = [("stars", "text"), ("5", "1"), ("5", "2"), ("1", "3"), ("1", "4")]
    read_document_corpus(write("a.tsv", table(pairs)))
    assert caplog.text.count("labels that occur only once: 'stars'. If") == 1


def test_a_tenth_of_each_label_is_held_out(write, seed):
    pairs = numbered(common=204, rare=36, two=2, one=1)
    path = write("a.tsv", table(pairs))

    corpus = read_document_corpus(path, seed=seed)

    assert Counter(corpus.validation.labels) == {
        "common": 20,
        "rare": 4,
        "two": 1,
    }
    assert corpus.test == corpus.validation
    # Nothing is lost, and the order of the file stays.
    held_out = set(pairs_of(corpus.validation))
    assert pairs_of(corpus.train) == [p for p in pairs if p not in held_out]
    assert pairs_of(corpus.validation) == [p for p in pairs if p in held_out]


def test_no_more_than_2500_are_held_out_in_proportion(write):
    path = write("a.tsv", table(numbered(a=30_000, b=10_000, c=3)))

    held_out = Counter(read_document_corpus(path).validation.labels)

    assert held_out["a"] == pytest.approx(1875, abs=2)
    assert held_out["b"] == pytest.approx(625, abs=2)
    assert held_out["c"] == 1
    assert 2495 <= held_out.total() <= 2500


def test_documents_of_one_text_stay_together(write, seed):
    once = numbered(a=60, b=60)
    twice = [(label, f"twice {text}") for label, text in numbered(a=20, b=20)]
    pairs = once + twice + twice
    path = write("a.tsv", table(pairs))

    corpus = read_document_corpus(path, seed=seed)

    assert not set(corpus.train.texts) & set(corpus.validation.texts)
    assert Counter(corpus.validation.labels) == {"a": 10, "b": 10}


def test_a_file_with_each_text_twice_is_split(write, seed):
    pairs = numbered(a=55, b=3) * 2
    corpus = read_document_corpus(write("a.tsv", table(pairs)), seed=seed)

    assert Counter(corpus.validation.labels) == {"a": 10, "b": 2}
    assert not set(corpus.train.texts) & set(corpus.validation.texts)
    assert len(corpus.train.texts) == 104


def test_what_is_frequent_is_not_held_out(write, seed):
    often = [("a", f"often {n}") for n in range(5)] * 10
    pairs = numbered(a=50, b=10) + often

    corpus = read_document_corpus(write("a.tsv", table(pairs)), seed=seed)

    assert Counter(corpus.validation.labels) == {"a": 10, "b": 1}
    assert not set(corpus.validation.texts) & {text for _, text in often}


def test_a_text_of_two_labels_stays_in_training(write, seed):
    both = [(label, f"{n}") for n in range(20) for label in ("a", "b")]
    own = [("a", "a's"), ("b", "b's"), ("b", "b's too")]
    path = write("a.tsv", table(both + own))

    corpus = read_document_corpus(path, seed=seed)

    # An a stays in training though the only text of a alone does not.
    assert Counter(corpus.validation.labels) == {"a": 1, "b": 2}
    assert pairs_of(corpus.train) == both


def test_ready_sentences_stay_ready_in_both_parts(write):
    records = [
        {"label": label, "sentences": [f"{label} {n}", "b"]}
        for label in ("x", "y")
        for n in range(5)
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, records)).encode())

    corpus = read_document_corpus(path)

    assert corpus.train.in_lines and corpus.validation.in_lines
    assert all(text.endswith("\nb") for text in corpus.validation.texts)


def test_too_few_documents_to_hold_out_are_an_error(write):
    path = write("a.tsv", table([*numbered(a=1, b=1), ("b", "b 0")]))

    with pytest.raises(DataError, match=r"a\.tsv: no document can be held out"):
        read_document_corpus(path)


SPLIT = """
import sys
from kseq.data.documents.document_corpus import read_document_corpus
corpus = read_document_corpus(sys.argv[1], seed=3)
print(corpus.labels, corpus.validation)
"""


@pytest.mark.slow
def test_the_seed_decides_in_any_process(write):
    pairs = [(str(n % 7), f"text {n // 14} {n % 7}") for n in range(500)]
    path = write("a.tsv", table([*pairs, ("01", "0")]))

    there = subprocess.run(
        [sys.executable, "-c", SPLIT, str(path)],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    corpus = read_document_corpus(path, seed=3)
    assert there.strip() == f"{corpus.labels} {corpus.validation}"
    assert read_document_corpus(path, seed=4).validation != corpus.validation


def test_the_numbers_are_logged_once(write, caplog):
    caplog.set_level(logging.INFO)
    pairs = [("x", "1"), ("x", "1"), ("x", "2"), ("y", "3"), ("y", "4")]
    train = write("a.tsv", table([*pairs, ("z", "5"), ("z", " ")]))
    held_out = write("b.tsv", table([("y", "3"), ("x", "\x0c")]))

    corpus = read_document_corpus(train, held_out)

    assert caplog.messages == corpus.describe()
    assert corpus.describe() == [
        f"Training documents: 6 ({train})",
        f"Validation documents: 1 ({held_out})",
        "Labels: 3",
        "Duplicate documents: 1 of 6, 0 of them with a different label",
        f"{train}: 1 of 7 documents are left out: 1 blank, 0 over 1000000 "
        "bytes.",
        f"{held_out}: 1 of 2 documents are left out: 1 blank, 0 over 1000000 "
        "bytes.",
        "1 of 1 validation documents are also in training: scores on them "
        "will be too high.",
        f"{train}: labels that occur only once: 'z'. If one is a column "
        "name, name the columns with --columns, or delete its row.",
    ]
    caplog.clear()
    read_document_corpus(train, held_out, log=False)
    assert caplog.text == ""


def test_a_label_for_each_document_means_swapped_columns(write):
    rows = [(f"Good {n}.", "5") for n in range(30)]
    path = write("a.tsv", table([*rows, rows[0]]))

    with pytest.raises(
        DataError,
        match=r"a\.tsv: column 'label' has 30 .*or --columns 2 1 where no row "
        "names them$",
    ) as error:
        read_document_corpus(path)
    assert "Good" not in str(error.value)


def test_an_empty_path_of_validation_needs_train_too():
    with pytest.raises(DataError, match="validation needs train"):
        read_document_corpus(validation="")


@pytest.mark.parametrize("paths", [("",), ("a.tsv", "")])
def test_an_empty_path_is_not_the_built_in_corpus(write, paths, monkeypatch):
    monkeypatch.chdir(write("a.tsv", table(numbered(a=2, b=2))).parent)

    with pytest.raises(DataError, match="found an empty one"):
        read_document_corpus(*paths)
