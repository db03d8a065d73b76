"""Vectors of pieces, learned from which pieces occur near each other."""

import numpy as np
import tensorflow as tf

from kseq.data.files.ragged_array import RaggedArray
from kseq.data.text.randomized_svd import randomized_svd
from kseq.terminal import progress

_WINDOW = 8  # pieces on each side; one at distance d counts 1 / d
_SMOOTHING = 0.75  # exponent of the counts of contexts: rare ones count less
_BLOCK = 2048  # documents that are counted together


def piece_vectors(
    ids: tf.RaggedTensor | RaggedArray, vocab_size: int, dim: int
) -> np.ndarray:
    """Learns vectors of pieces from documents, without their labels.

    Pieces with similar neighbours get similar vectors. An embedding that
    starts from them knows more pieces than a few thousand labels can teach:
    Yang et al. start from word2vec's, which factorizes much the same matrix.

        M[w, c] = max(0, log(P(w, c) / (P(w) P(c)))) = U S V'
        vectors = U sqrt(S), the `dim` largest of S

    Args:
        ids: (N, L, W) int, ragged: the pieces of the documents, in memory or
            in files.
        vocab_size: int, V, number of different pieces.
        dim: int, D.

    Returns:
        (V, D) float32, the same for the same documents. Their root mean
        square is D ** -0.5; the vector of a piece that does not occur is 0.

    Example:
    >>> documents = tf.ragged.constant([[[4, 5, 6, 4, 5], [6, 7]], [[5, 4]]])
    >>> piece_vectors(documents, vocab_size=8, dim=2).shape
    (8, 2)

    Reference:
        Levy, Goldberg and Dagan 2015, aclanthology.org/Q15-1016.
    """
    vectors = np.zeros((vocab_size, dim), "float32")
    counts = _counts(ids, vocab_size)
    with progress("Computing the vectors of pieces"):
        association = _positive_association(counts)
        if not association.nnz:
            return vectors
        left, strengths = randomized_svd(association, dim)
    vectors[:, : len(strengths)] = left * np.sqrt(strengths)
    occurs = association.sum(axis=1) > 0
    vectors[~occurs] = 0
    return vectors * (dim * np.mean(vectors[occurs] ** 2)) ** -0.5


def _counts(ids, vocab_size):
    """How often pieces occur together, (V, V), sparse and symmetric."""
    import scipy.sparse  # slow, and needed for training alone

    shape = (vocab_size, vocab_size)
    counts = scipy.sparse.csr_array(shape, dtype="float32")
    ids = RaggedArray.of(ids)
    total = len(ids)
    with progress("Counting neighbours", total, "documents") as advance:
        for start in range(0, total, _BLOCK):
            numbers = tf.range(start, min(start + _BLOCK, total))
            rows = ids.gather(numbers).merge_dims(1, 2)
            block = _neighbours(rows)
            counts += scipy.sparse.coo_array(block, shape).tocsr()
            advance(int(rows.nrows()))
    return counts + counts.T


def _neighbours(rows):
    """Pairs of pieces near each other: weights, and (first, second)."""
    pieces = tf.cast(rows.flat_values, tf.int32).numpy()
    document = rows.value_rowids().numpy()
    first, second, weights = [], [], []
    for distance in range(1, _WINDOW + 1):
        same = document[distance:] == document[:-distance]
        first.append(pieces[:-distance][same])
        second.append(pieces[distance:][same])
        weights.append(np.full(same.sum(), 1 / distance, "float32"))
    indices = np.concatenate(first), np.concatenate(second)
    return np.concatenate(weights), indices


def _positive_association(together):
    together = together.tocoo()
    of_pieces = together.sum(axis=1)
    of_contexts = of_pieces**_SMOOTHING
    of_contexts /= max(of_contexts.sum(), 1)
    row, column = together.coords
    association = np.log(together.data / (of_pieces[row] * of_contexts[column]))
    together.data = np.maximum(association, 0)
    association = together.tocsr()
    association.eliminate_zeros()
    return association
