"""Vectors of words, learned from which words stand near each other."""

import numpy as np
import scipy.sparse
import tensorflow as tf
from sklearn.utils.extmath import randomized_svd

from kseq.data.document_tokenizer import DocumentTokenizer
from kseq.data.documents import Documents

_WINDOW = 8  # words on each side; one at distance d counts 1 / d
_SMOOTHING = 0.75  # exponent of the counts of contexts: rare ones count less
_BLOCK = 2048  # documents that are counted at once


def word_vectors(
    documents: Documents, tokenizer: DocumentTokenizer, dim: int
) -> np.ndarray:
    """Learns vectors of words from documents, without their labels.

    Words with like neighbours get like vectors. An embedding that begins
    with them knows more words than a few thousand labels can teach: Yang et
    al. begin with word2vec's, which factorizes much the same matrix.

        M[w, c] = max(0, log(P(w, c) / (P(w) P(c)))) = U S V'
        vectors = U sqrt(S), the `dim` largest of S

    Args:
        documents: `Documents`.
        tokenizer: `DocumentTokenizer`, which gives V different words.
        dim: int, D.

    Returns:
        (V, D) float32, the same for the same documents. Their root mean
        square is D ** -0.5; a word that was not seen has the vector 0.

    Example:
    >>> documents = Documents(["A rose is a rose. Is it?"] * 2, ["yes", "no"])
    >>> tokenizer = DocumentTokenizer.train(documents, vocab_size=290)
    >>> word_vectors(documents, tokenizer, dim=4).shape
    (290, 4)

    Reference:
        Levy, Goldberg and Dagan 2015, aclanthology.org/Q15-1016.
    """
    vectors = np.zeros((tokenizer.vocab_size, dim), "float32")
    association = _positive_association(_counts(documents, tokenizer))
    if association.nnz:
        left, strength, _ = randomized_svd(
            association, dim, n_iter=3, random_state=0
        )
        vectors[:, : len(strength)] = left * np.sqrt(strength)
        occurs = association.sum(axis=1) > 0
        vectors[~occurs] = 0
        vectors *= (dim * np.mean(vectors[occurs] ** 2)) ** -0.5
    return vectors


def _counts(documents, tokenizer):
    """How often words stand together, (V, V), sparse and symmetric."""
    shape = (tokenizer.vocab_size, tokenizer.vocab_size)
    counts = scipy.sparse.csr_array(shape, dtype="float32")
    blocks = tf.data.Dataset.from_tensor_slices(documents.texts).batch(_BLOCK)
    for ids in blocks.map(tokenizer.tokenize, tf.data.AUTOTUNE):
        rows = ids.merge_dims(1, 2)
        words, document = rows.flat_values.numpy(), rows.value_rowids().numpy()
        first, second, weights = [], [], []
        for distance in range(1, _WINDOW + 1):
            same = document[distance:] == document[:-distance]
            first.append(words[:-distance][same])
            second.append(words[distance:][same])
            weights.append(np.full(same.sum(), 1 / distance, "float32"))
        places = np.concatenate(first), np.concatenate(second)
        block = np.concatenate(weights), places
        counts += scipy.sparse.coo_array(block, shape).tocsr()
    return counts + counts.T


def _positive_association(together):
    together = together.tocoo()
    of_words = together.sum(axis=1)
    of_contexts = of_words**_SMOOTHING
    of_contexts /= max(of_contexts.sum(), 1)
    row, column = together.coords
    association = np.log(together.data / (of_words[row] * of_contexts[column]))
    kept = association > 0
    places = row[kept], column[kept]
    return scipy.sparse.csr_array((association[kept], places), together.shape)
