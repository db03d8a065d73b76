"""The product of features and a kernel."""

from keras import ops


def project(x, kernel):
    """(..., D), (D, U) -> (..., U), as one product of two matrices.

    `ops.matmul` computes the order of the axes where sizes are unknown. This
    takes more operations, and in a loop XLA has no gradient of them.
    """
    rows = ops.reshape(x, (-1, kernel.shape[0]))
    shape = (*ops.shape(x)[:-1], kernel.shape[1])
    return ops.reshape(ops.matmul(rows, kernel), shape)
