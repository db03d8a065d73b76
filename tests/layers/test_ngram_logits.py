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
    for weight in layer.weights[:2]:
        weight.assign(np.random.normal(size=weight.shape))
    if ngrams:  # every other piece and n-gram owns a bucket
        owners = np.zeros(num_buckets, "int32")
        for found in sorted(ngrams_of(np.arange(1, 6), 3))[::2]:
            owners[hashed(found, 1999, BUCKETS)] = fingerprint(found)
        layer.owners.assign(owners)
    return layer


def hashed(pieces, factor, modulus):
    key = 0
    for piece in pieces:
        key = (key * factor + int(piece) + 1) % modulus
    return key


def fingerprint(pieces):
    return 1 + hashed(pieces, 31_981, 65_521)


def ngrams_of(pieces, most):
    return {
        found
        for size in range(1, most + 1)
        for found in itertools.product(pieces.tolist(), repeat=size)
    }


def buckets_of(document, ngrams, owners):
    """Of the n-grams that own them."""
    sentences = [row[row != 0].tolist() for row in document]
    found = {
        tuple(row[start : start + size])
        for row, size in itertools.product(sentences, range(1, ngrams + 1))
        for start in range(len(row) - size + 1)
    }
    return {
        bucket
        for each in found
        if owners[bucket := hashed(each, 1999, BUCKETS)] == fingerprint(each)
    }


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize("ngrams", [1, 2, 3, 10])
def test_each_ngram_counts_once(seed, ngrams):
    layer, ids = make(ngrams), documents()
    network = np.random.normal(size=(5, 3)).astype("float32")
    scores, bias, owners = map(numpy_of, layer.weights)
    owned = [buckets_of(document, ngrams, owners) for document in ids]
    assert all(0 < len(each) < 40 for each in owned[:2])
    for buckets, row, found in zip(
        owned, network, numpy_of(layer(network, ids)), strict=True
    ):
        bag = scores[sorted(buckets)].sum(0) + bias
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
    assert len(layer.weights) == (3 if arguments else 0)
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


def test_ngrams_of_one_hash_are_told_apart():
    """Of two pairs with one hash the owner alone has scores."""
    owner, other = (1, 3), (2, 3 - 1999 % 512 + 512)
    layer = make()
    owners = np.zeros(BUCKETS, "int32")
    owners[hashed(owner, 1999, BUCKETS)] = fingerprint(owner)
    layer.owners.assign(owners)
    assert hashed(owner, 1999, BUCKETS) == hashed(other, 1999, BUCKETS)
    ids = np.array([[owner], [other], [(0, 0)]], "int32")
    found = numpy_of(layer(np.zeros((3, 3), "float32"), ids))
    np.testing.assert_array_equal(found[1], found[2])
    assert np.all(found[0] != found[2])


def test_no_product_overflows():
    """The largest piece after the largest key of the most buckets."""
    layer = NgramLogits(2, ngrams=3)
    piece = 1_000_000
    ids = np.full((1, 1, 3), piece, "int32")
    found = map(ops.convert_to_numpy, layer.hashes(ids))
    buckets, fingerprints = (each.reshape(3, 3)[0] for each in found)
    for size in (1, 2, 3):
        bucket = hashed([piece] * size, 1999, 2**20)
        assert buckets[size - 1] == bucket
        assert fingerprints[size - 1] == fingerprint([piece] * size)
    assert (2**20 - 1) * 1999 + piece + 1 < 2**31
    assert 65_520 * 31_981 + piece + 1 < 2**31


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
