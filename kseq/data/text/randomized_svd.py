"""The largest singular values of a large matrix, and their left vectors."""

import numpy as np

_OVERSAMPLES = 10  # columns of the subspace beyond the rank
_ITERATIONS = 3  # of the power method


def randomized_svd(matrix, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Approximates the left part of a truncated singular value decomposition.

        Q = orthonormal basis of (A A')^3 A G,  G random
        Q' A = W S V',  U = Q W

    Args:
        matrix: (M, N) float, dense or sparse: whatever has `@` and `T`.
        rank: number of singular values.

    Returns:
        U (M, K) and S (K,), the largest first, where K is `rank`, or fewer if
        the matrix has fewer. The entry of a column with the largest absolute
        value is positive, and the same matrix gives the same vectors.

    Example:
    >>> left, strengths = randomized_svd(np.diag([1.0, 3.0, 2.0]), rank=2)
    >>> strengths.round(3).tolist()
    [3.0, 2.0]
    >>> np.abs(left.round(3)).T.tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

    Reference:
        Halko, Martinsson and Tropp 2011, arXiv:0909.4061, algorithms 4.4
        and 5.1.
    """
    shape = matrix.shape[1], rank + _OVERSAMPLES
    basis = np.random.RandomState(0).normal(size=shape).astype(matrix.dtype)
    for _ in range(_ITERATIONS):
        basis, _ = np.linalg.qr(matrix @ basis)
        basis, _ = np.linalg.qr(matrix.T @ basis)
    basis, _ = np.linalg.qr(matrix @ basis)

    left, strengths, _ = np.linalg.svd(
        (matrix.T @ basis).T, full_matrices=False
    )
    left = (basis @ left)[:, :rank]
    largest = np.abs(left).argmax(axis=0)
    signs = np.sign(left[largest, np.arange(left.shape[1])])
    return left * signs, strengths[:rank]
