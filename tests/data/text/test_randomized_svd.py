import numpy as np
import pytest
import scipy.sparse

from kseq.data.text.randomized_svd import randomized_svd


def some_matrix(rows=60, columns=40, dtype="float64"):
    """With singular values that fall quickly, as those of word counts do."""
    draw = np.random.default_rng(0)
    left, _ = np.linalg.qr(draw.normal(size=(rows, columns)))
    right, _ = np.linalg.qr(draw.normal(size=(columns, columns)))
    return ((left * 0.7 ** np.arange(columns)) @ right).astype(dtype)


@pytest.mark.parametrize("shape", [(60, 40), (40, 40)])
def test_equals_the_whole_decomposition(shape):
    matrix = some_matrix(*shape)
    expected, strengths, _ = np.linalg.svd(matrix)

    left, found = randomized_svd(matrix, rank=6)

    np.testing.assert_allclose(found, strengths[:6], rtol=1e-6)
    alike = np.abs(np.sum(left * expected[:, :6], axis=0))
    np.testing.assert_allclose(alike, 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_equals_scikit_learn(form, dtype):
    from sklearn.utils import extmath  # slow to import

    matrix = form(some_matrix(dtype=dtype))
    expected, strengths, _ = extmath.randomized_svd(
        matrix, 8, n_iter=3, random_state=0
    )

    left, found = randomized_svd(matrix, rank=8)

    tolerance = {"float32": 1e-5, "float64": 1e-9}[dtype]
    np.testing.assert_allclose(found, strengths, rtol=tolerance)
    np.testing.assert_allclose(left, expected, atol=10 * tolerance)
    assert left.dtype == found.dtype == dtype


def test_columns_are_orthonormal_and_their_largest_entry_is_positive():
    left, _ = randomized_svd(some_matrix(), rank=8)

    np.testing.assert_allclose(left.T @ left, np.eye(8), atol=1e-12)
    assert (left.max(axis=0) == np.abs(left).max(axis=0)).all()


def test_a_rank_beyond_the_matrix_gives_all():
    matrix = some_matrix(5, 4)

    left, strengths = randomized_svd(matrix, rank=9)

    expected = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(strengths, expected, rtol=1e-9)
    assert left.shape == (5, 4)


def test_a_matrix_of_zeros_has_no_strength():
    left, strengths = randomized_svd(np.zeros((4, 4)), rank=2)

    assert not strengths.any()
    assert np.isfinite(left).all()
