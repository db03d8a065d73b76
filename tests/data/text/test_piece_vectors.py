import numpy as np
import pytest
import tensorflow as tf

from kseq.data import piece_vectors

VOCAB = 9


def vectors_of(documents, dim=VOCAB):
    ids = tf.ragged.constant(documents, dtype="int32", ragged_rank=2)
    return piece_vectors(ids, VOCAB, dim)


def some_documents(count=30):
    """Of one to three sentences; piece 0 is in none."""
    draw = np.random.default_rng(0)
    return [
        [
            draw.integers(1, VOCAB, size).tolist()
            for size in draw.integers(1, 9, number)
        ]
        for number in draw.integers(1, 4, count)
    ]


def test_equals_the_formula():
    """Counted pair by pair, and factorized whole."""
    documents = some_documents()
    counts = np.zeros((VOCAB, VOCAB))
    for document in documents:
        pieces = np.concatenate(document)
        for i, piece in enumerate(pieces):
            for j in range(max(0, i - 8), min(len(pieces), i + 9)):
                if i != j:
                    counts[piece, pieces[j]] += 1 / abs(i - j)
    of_pieces = counts.sum(1)
    of_contexts = of_pieces**0.75 / (of_pieces**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        association = np.log(counts / np.outer(of_pieces, of_contexts))
    association[~(association > 0)] = 0
    left, strength, _ = np.linalg.svd(association)
    expected = left * np.sqrt(strength)
    expected /= np.sqrt(VOCAB * np.mean(expected[1:] ** 2))

    # The direction of an axis is free.
    found = vectors_of(documents)
    np.testing.assert_allclose(
        found @ found.T, expected @ expected.T, atol=1e-3
    )
    assert found.dtype == np.float32


def test_a_piece_that_does_not_occur_is_nothing():
    assert not vectors_of(some_documents())[0].any()


def test_pieces_with_similar_neighbours_are_similar():
    """1 and 2 are among 5 and 6, 3 and 4 among 7 and 8."""
    company = [[5, 1, 6]], [[6, 2, 5]], [[7, 3, 8]], [[8, 4, 7]]
    vectors = vectors_of(company * 2, dim=3)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    assert vectors[1] @ vectors[2] > 0.9 > 0.1 > vectors[1] @ vectors[3]


def test_the_same_documents_give_the_same():
    documents = some_documents()
    first, again = vectors_of(documents, 4), vectors_of(documents, 4)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("documents", [[[[1]]], [[[1]], [[2]], []], [[[1, 2]]]])
def test_what_says_little_gives_finite_vectors(documents):
    vectors = vectors_of(documents, dim=20)
    assert vectors.shape == (VOCAB, 20)
    assert np.isfinite(vectors).all()
