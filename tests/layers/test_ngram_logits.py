"""A bag of n-grams beside a network, with a dict of Python as oracle."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from kseq.layers import NgramLogits
from tests.layers.arrays import numpy_of

BUCKETS = 512
TENSORFLOW = keras.backend.backend() == "tensorflow"


def documents():
    ids = np.random.randint(1, 6, (5, 3, 7))
    lengths = np.random.randint(0, 8, (5, 3, 1))
    ids = np.where(np.arange(7) < lengths, ids, 0)
    ids[2] = 0
    return ids.astype("int32")


def make(ngrams=3, num_classes=3, num_buckets=BUCKETS):
    layer = NgramLogits(num_classes, ngrams=ngrams, num_buckets=num_buckets)
    layer.build((None, num_classes), (None, None, None))
    for weight in layer.weights:
        weight.assign(np.random.normal(size=weight.shape))
    return layer


def bucket(pieces):
    key = 0
    for piece in pieces:
        key = (key * 1999 + int(piece) + 1) % BUCKETS
    return key


def buckets_of(document, ngrams):
    sentences = [row[row != 0].tolist() for row in document]
    return {
        bucket(row[start : start + size])
        for row, size in itertools.product(sentences, range(1, ngrams + 1))
        for start in range(len(row) - size + 1)
    }


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize("ngrams", [1, 2, 3, 10])
def test_each_ngram_counts_once(seed, ngrams):
    layer, ids = make(ngrams), documents()
    network = np.random.normal(size=(5, 3)).astype("float32")
    scores, bias = map(numpy_of, layer.weights)
    for document, row, found in zip(
        ids, network, numpy_of(layer(network, ids)), strict=True
    ):
        bag = scores[sorted(buckets_of(document, ngrams))].sum(0) + bias
        expected = (log_softmax(row) + log_softmax(bag)) / 2
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_the_order_of_sentences_and_padding_change_nothing(seed):
    layer, ids = make(), documents()
    network = np.random.normal(size=(5, 3)).astype("float32")
    expected = numpy_of(layer(network, ids))
    padded = np.pad(ids, ((0, 0), (0, 2), (0, 4)))
    on_the_left = np.pad(ids, ((0, 0), (0, 0), (3, 0)))
    twice = np.concatenate([ids[:, ::-1], ids], axis=1)
    for same in (padded, on_the_left, twice):
        found = numpy_of(layer(network, same))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("arguments", [{"training": True}, {}])
def test_in_training_the_network_answers_alone(seed, arguments):
    layer = make(2 if arguments else 0)
    network = np.random.normal(size=(5, 3)).astype("float32")
    found = numpy_of(layer(network, documents(), **arguments))
    np.testing.assert_array_equal(found, network)
    assert len(layer.weights) == (2 if arguments else 0)
    assert not layer.trainable_weights


@pytest.mark.skipif(not TENSORFLOW, reason="compiles with TensorFlow")
def test_the_same_with_xla(seed):
    import tensorflow as tf

    layer, ids = make(), documents()
    network = np.random.normal(size=(5, 3)).astype("float32")
    compiled = tf.function(layer, jit_compile=True)
    np.testing.assert_allclose(
        compiled(network, ids), layer(network, ids), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(
    ("num_classes", "expected"),
    [(2, 2**20), (8, 2**20), (9, 2**19), (1000, 2**13), (10**8, 1)],
)
def test_many_classes_share_fewer_buckets(num_classes, expected):
    assert NgramLogits(num_classes, ngrams=2).num_buckets == expected


def test_no_product_overflows():
    """The largest piece after the largest key of the most buckets."""
    layer = NgramLogits(2, ngrams=3)
    ids = np.full((1, 1, 4), 1_000_000, "int32")
    buckets, is_new = map(ops.convert_to_numpy, layer.buckets(ids))
    key, keys = 0, set()
    for _ in range(3):
        key = (key * 1999 + 1_000_001) % 2**20
        keys.add(key)
    assert set(buckets[is_new].tolist()) == keys
    assert (2**20 - 1) * 1999 + 1_000_001 < 2**31


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_classes": 0},
        {"ngrams": -1},
        {"ngrams": 11},
        {"ngrams": 1.5},
        {"num_buckets": 0},
        {"num_buckets": 2**20 + 1},
        {"num_buckets": 2.5},
    ],
)
def test_arguments_out_of_range(arguments):
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value}"):
        NgramLogits(**{"num_classes": 3, "ngrams": 2, **arguments})


def test_a_document_without_pieces(seed):
    layer = make()
    network = np.zeros((2, 3), "float32")
    found = numpy_of(layer(network, ops.zeros((2, 0, 0), "int32")))
    bias = numpy_of(layer.bias)
    expected = (log_softmax(network[0]) + log_softmax(bias)) / 2
    np.testing.assert_allclose(found, [expected] * 2, rtol=0, atol=1e-6)
