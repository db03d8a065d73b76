import itertools

import numpy as np
import pytest
import tensorflow as tf

import kseq.data.running_text.running_ids
from kseq.control_tokens import END, PAD, START
from kseq.data import (
    DataError,
    Tokenizer,
    running_ids,
    running_text_batches,
    running_text_evaluation,
)

DOCUMENTS = ["a rose\nis a rose\n", "b", " c\n\n"]
IDS = np.arange(4, 35, dtype="int32")  # 30 have one after them


@pytest.fixture(scope="module")
def characters():
    return Tokenizer.train(DOCUMENTS, 99, "char", verbatim=True)


def test_each_document_is_between_start_and_end(characters, monkeypatch):
    parts = characters.tokenize(DOCUMENTS).to_list()
    expected = [i for part in parts for i in (START, *part, END)]
    ids = running_ids(DOCUMENTS, characters)
    assert ids.dtype == np.int32
    assert ids.tolist() == expected
    monkeypatch.setattr(kseq.data.running_text.running_ids, "_CHARACTERS", 1)
    assert running_ids(DOCUMENTS, characters).tolist() == expected


def test_other_tokenizers_are_refused(tokenizer):
    with pytest.raises(ValueError, match="needs a verbatim tokenizer"):
        running_ids(DOCUMENTS, tokenizer)


def rows_of(batches, count):
    """The first rows as tuples, their labels at the end."""
    rows = []
    for inputs, labels, _ in batches:
        pairs = zip(inputs["target_ids"].numpy(), labels.numpy(), strict=True)
        for row, label in pairs:
            assert row[1:].tolist() == label[:-1].tolist()
            rows.append((*row.tolist(), int(label[-1])))
        if len(rows) >= count:
            return rows[:count]
    return rows


def test_every_row_is_in_each_epoch_once_and_cut_elsewhere():
    """30 tokens: five rows of five, and five that move the cuts."""
    batches = running_text_batches(IDS, batch_size=3, length=5, seed=1)
    rows = rows_of(batches, 4 * 5)
    epochs = [rows[i : i + 5] for i in range(0, 20, 5)]
    firsts = []
    for epoch in epochs:
        starts = sorted(row[0] for row in epoch)
        assert np.diff(starts).tolist() == [5] * 4
        assert all(np.diff(row).tolist() == [1] * 5 for row in epoch)
        firsts.append(starts[0])
    assert len({*firsts}) > 2
    assert len({tuple(row[0] // 5 for row in epoch) for epoch in epochs}) > 1
    same = running_text_batches(IDS, batch_size=3, length=5, seed=1)
    assert rows_of(same, 20) == rows
    other = running_text_batches(IDS, batch_size=3, length=5, seed=2)
    assert rows_of(other, 20) != rows


def test_a_saved_position_has_the_same_batches(tmp_path):
    batches = running_text_batches(IDS, batch_size=2, length=4, seed=1)
    iterator = iter(batches)
    for _ in range(5):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "at"))
    expected = rows_of(itertools.islice(iterator, 4), 8)
    again = iter(running_text_batches(IDS, batch_size=2, length=4, seed=1))
    tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
    assert rows_of(itertools.islice(again, 4), 8) == expected


@pytest.mark.parametrize("length", [30, 29, 15])
def test_a_text_of_one_row(length):
    batches = running_text_batches(IDS, batch_size=2, length=length, seed=1)
    for row in rows_of(batches, 6):
        assert len(row) == length + 1
        assert row[0] in IDS[: len(IDS) - length]


def test_too_short_a_text():
    with pytest.raises(DataError, match=r"30 tokens.*Received: length=31"):
        running_text_batches(IDS, batch_size=2, length=31, seed=1)


@pytest.mark.parametrize("length", [1, 3, 7, 50])
def test_an_evaluation_asks_for_every_token_once(characters, length):
    ids = running_ids(DOCUMENTS, characters)
    batches = running_text_evaluation(ids, batch_size=2, length=length)
    inputs, labels, weights = zip(*batches, strict=True)
    rows = -(-(len(ids) - 1) // length)
    assert len(inputs) == int(batches.cardinality()) == -(-rows // 2)
    read = np.concatenate([x["target_ids"] for x in inputs])
    labels, weights = np.concatenate(labels), np.concatenate(weights)
    assert read.shape == labels.shape == weights.shape == (rows, length)
    asked = labels[weights == 1]
    assert asked.tolist() == ids[1:][ids[1:] != START].tolist()
    assert not np.isin(labels[weights == 0], asked).any()
    assert {*labels[weights == 0]} <= {START, PAD}
    np.testing.assert_array_equal(read.ravel()[: len(ids)], ids[: read.size])


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_a_text_of_one_long_line_has_the_ids_of_the_line(kind, monkeypatch):
    text = "a rose  is \t a rose, 12 roses " * 60
    size = 60 if kind == "char" else 272
    tokenizer = Tokenizer.train([text], size, kind, verbatim=True)
    [whole] = tokenizer.tokenize([text]).to_list()
    monkeypatch.setattr(kseq.data.running_text.running_ids, "_LONGEST", 50)
    assert running_ids([text], tokenizer)[1:-1].tolist() == whole
