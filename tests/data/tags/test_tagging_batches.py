import itertools

import numpy as np
import pytest
import tensorflow as tf

from kseq.data import Tokenizer, WordPreprocessor, tagging_batches
from kseq.data.tags.journeys import journeys


@pytest.fixture(scope="module")
def sentences():
    return journeys("train", size=300)


@pytest.fixture(scope="module")
def tagset(sentences):
    return tuple(sorted({tag for tags in sentences.tags for tag in tags}))


@pytest.fixture(scope="module")
def preprocessor(sentences):
    return WordPreprocessor(Tokenizer.train(sentences.texts, 330))


@pytest.fixture(scope="module")
def ids(sentences, preprocessor):
    return preprocessor.tokenize_all(sentences.texts)


@pytest.fixture(scope="module")
def some(ids, sentences, tagset):
    def some(count, **arguments):
        arguments = {"batch_pieces": 400, "seed": 1, **arguments}
        batches = tagging_batches(ids, sentences.tags, tagset, **arguments)
        return list(itertools.islice(batches.as_numpy_iterator(), count))

    return some


@pytest.fixture(scope="module")
def first_batches(some):
    return some(60)


def test_every_word_comes_with_its_tag(first_batches, ids, sentences, tagset):
    expected = {
        text: [tagset.index(tag) for tag in tags]
        for text, tags in zip(*sentences, strict=True)
    }
    texts = {
        str(words): text
        for words, text in zip(ids.to_list(), sentences.texts, strict=True)
    }
    seen = set()
    for inputs, labels, weights in first_batches:
        for rows, row_labels, row_weights in zip(
            inputs["source_ids"], labels, weights, strict=True
        ):
            words = [row[row != 0].tolist() for row in rows if row.any()]
            text = texts[str(words)]
            seen.add(text)
            assert row_weights.tolist() == [1.0] * len(words) + [0.0] * (
                len(row_weights) - len(words)
            )
            assert row_labels[: len(words)].tolist() == expected[text]
    assert seen == {*sentences.texts}


def test_the_budget_holds_and_padding_is_rare(first_batches):
    pieces = padding = 0
    for inputs, labels, weights in first_batches[:40]:
        real = np.count_nonzero(inputs["source_ids"])
        assert real <= 400
        assert inputs["source_ids"].shape[:2] == labels.shape == weights.shape
        pieces += weights.sum()
        padding += (weights == 0).sum()
    assert padding < 0.25 * pieces


def test_the_seed_decides_the_order(first_batches, some):
    first, again, other = first_batches[:5], some(5), some(5, seed=2)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one[1], two[1])
    assert any(
        one[1].shape != two[1].shape or (one[1] != two[1]).any()
        for one, two in zip(first, other, strict=True)
    )


def test_one_tag_for_each_word(ids, sentences, tagset):
    tags = [*sentences.tags[:-1], sentences.tags[-1][:-1]]
    with pytest.raises(ValueError, match="one tag for each word"):
        tagging_batches(ids, tags, tagset, batch_pieces=400, seed=1)


def test_few_shapes(ids, sentences, tagset):
    batches = tagging_batches(
        *(ids, sentences.tags, tagset), batch_pieces=400, seed=1, max_shapes=4
    )
    expected = {
        (inputs["source_ids"].shape, labels.shape, weights.shape)
        for inputs, labels, weights in batches.shapes
    }
    seen, found = set(), set()
    for inputs, labels, weights in batches.take(60):
        source_ids = inputs["source_ids"]
        assert tf.math.count_nonzero(source_ids) <= 400
        found.add((source_ids.shape, labels.shape, weights.shape))
        is_word = tf.reduce_any(source_ids != 0, axis=2).numpy()
        is_word[~weights.numpy().any(axis=1)] = False  # fills the batch
        np.testing.assert_array_equal(weights, is_word.astype("float32"))
        for rows in source_ids.numpy():
            words = [row[row != 0].tolist() for row in rows if row.any()]
            seen.add(str(words))
    assert found == expected
    assert 2 <= len(found) <= 4
    assert seen == {str(row) for row in ids.to_list()}
