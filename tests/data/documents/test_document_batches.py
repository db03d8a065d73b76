import itertools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import DocumentPreprocessor, document_batches
from kseq.data.documents.dispatch_reports import dispatch_reports
from kseq.user_error import ArgumentError

LABELS = ("ambulance", "fire", "flood", "police")


@pytest.fixture(scope="module")
def documents():
    return dispatch_reports("train", size=300)


@pytest.fixture(scope="module")
def tokenizer(documents):
    return DocumentPreprocessor.train(documents, 600)


@pytest.fixture(scope="module")
def ids_of_all(documents, tokenizer):
    return tokenizer.tokenize_all(documents.texts)


@pytest.fixture(scope="module")
def batches(documents, tokenizer, ids_of_all):
    def make(others=None, classes=LABELS, **arguments):
        ids, labels = ids_of_all, documents.labels
        if others is not None:
            ids, labels = tokenizer.tokenize_all(others.texts), others.labels
        arguments = {"batch_pieces": 600, "seed": 1, **arguments}
        return document_batches(ids, labels, classes, **arguments)

    return make


def some(batches, count):
    return list(itertools.islice(batches.as_numpy_iterator(), count))


@pytest.fixture(scope="module")
def usual(batches):
    return batches()


@pytest.fixture(scope="module")
def again(batches):
    """The same ones, traced again."""
    return batches()


@pytest.fixture(scope="module")
def first_batches(usual):
    """Those of several epochs: tracing takes longer than running."""
    return some(usual, 100)


def rows_of(batch):
    """Documents of a batch as tuples of their words, without padding."""
    inputs, labels, _ = batch
    for ids, label in zip(inputs["source_ids"], labels, strict=True):
        yield tuple(ids[ids != 0].tolist()), int(label)


def test_every_document_comes_with_its_label(
    documents, tokenizer, first_batches
):
    expected = {
        (tuple(ids.flat_values.numpy().tolist()), LABELS.index(label))
        for ids, label in zip(
            tokenizer.tokenize(documents.texts), documents.labels, strict=True
        )
    }
    found = [row for batch in first_batches for row in rows_of(batch)]
    assert set(found) == expected
    # Each is seen once an epoch, though some wait for their batch to be full.
    seen = Counter(found)
    assert max(seen.values()) - min(seen.values()) <= 2


def test_batches_hold_a_budget_of_words(first_batches):
    for inputs, _, weights in first_batches:
        ids = inputs["source_ids"]
        assert (ids != 0).sum() <= 600
        assert len(weights) == len(ids) > 1
        assert (weights == 1).all()
        assert ids.any(axis=(0, 1))[-1]  # as wide as the longest sentence
        assert ids.any(axis=(0, 2))[-1]


def test_a_document_over_the_budget_is_a_batch(batches):
    assert {len(b[1]) for b in some(batches(batch_pieces=1), 20)} == {1}


def test_alike_documents_stand_together(first_batches):
    for inputs, *_ in first_batches:
        words = (inputs["source_ids"] != 0).sum(axis=(1, 2))
        assert words.max() <= 1.5 * words.min()


@pytest.fixture(scope="module")
def odd_batches(documents, batches):
    """Of a document of one word, of one of none, and of the others."""
    texts = ["Fire.", "<br />", *documents.texts[2:]]
    return some(batches(documents._replace(texts=texts)), 100)


def test_a_short_document_does_not_make_batches_small(odd_batches):
    """It would need a bucket of hundreds of its like."""
    words = [(inputs["source_ids"] != 0).sum() for inputs, *_ in odd_batches]
    assert np.median(words) > 400


def test_shuffled_by_the_seed(first_batches, batches, again):
    first = [list(rows_of(batch)) for batch in first_batches[:40]]
    again = [list(rows_of(batch)) for batch in some(again, 40)]
    other = [list(rows_of(batch)) for batch in some(batches(seed=4), 40)]
    assert first == again
    assert first != other
    assert first[:20] != first[20:40]


def test_balanced_labels_weigh_the_same(documents, batches):
    few = documents._replace(
        texts=documents.texts[:80], labels=["fire"] * 60 + ["flood"] * 20
    )
    made = batches(few, classes=("fire", "flood"), balanced=True)
    for _, labels, weights in some(made, 20):
        expected = np.where(labels == 0, 80 / (2 * 60), 80 / (2 * 20))
        np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_documents_without_words_are_left_out(documents, odd_batches):
    count = sum(len(labels) for _, labels, _ in odd_batches)
    assert count > len(documents.texts)  # more than an epoch
    for inputs, *_ in odd_batches:
        assert inputs["source_ids"].any(axis=(1, 2)).all()


def test_position_can_be_saved(usual, again, tmp_path):
    iterator = iter(usual)
    for _ in range(5):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
    expected = [next(iterator)[0]["source_ids"].numpy() for _ in range(5)]

    other = iter(again)
    tf.train.Checkpoint(iterator=other).read(path).assert_consumed()
    for ids in expected:
        np.testing.assert_array_equal(next(other)[0]["source_ids"], ids)


IDS = [[[4, 5, 6], [5]], [[5, 7]], [[9]]]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["yes", "no"], "2 labels, 3 examples"),
        (np.array([1, 0]), "2 labels, 3 examples"),
        (["yes", "no", "no", "no"], "4 labels, 3 examples"),
        (["yes", "no", "maybe"], "among the classes. Received: 'maybe'"),
    ],
)
def test_each_document_has_one_known_label(labels, message):
    """Of fewer labels than documents the rest was left out."""
    with pytest.raises(ArgumentError, match=message):
        document_batches(
            tf.ragged.constant(IDS),
            labels,
            ("no", "yes"),
            batch_pieces=64,
            seed=1,
        )


def test_labels_may_be_an_array_of_texts():
    ids, classes = tf.ragged.constant(IDS), ("no", "yes")
    options = {"batch_pieces": 64, "seed": 1}
    for labels in (["yes", "no", "no"], np.array(["yes", "no", "no"])):
        batches = document_batches(ids, labels, classes, **options)
        [(_, found, _)] = some(batches, 1)
        assert sorted(found) == [0, 0, 1]
