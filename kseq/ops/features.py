"""Functions of the features of each position."""

import math

from keras import ops


def project(x, kernel):
    """(..., D), (D, U) -> (..., U), as one product of two matrices.

    `ops.matmul` computes the order of the axes where sizes are unknown. This
    takes more operations, and in a loop XLA has no gradient of them.
    """
    rows = ops.reshape(x, (-1, kernel.shape[0]))
    shape = (*ops.shape(x)[:-1], kernel.shape[1])
    return ops.reshape(ops.matmul(rows, kernel), shape)


def layer_norm(inputs, gamma, beta, epsilon=1e-5):
    """Gamma times the normalized inputs plus beta, computed in float32.

    The normalized inputs have mean 0 and variance 1 over the last axis.

    Args:
        inputs: (..., D) float.
        gamma: (D,) float.
        beta: (D,) float.
        epsilon: float, added to the variance.

    Returns:
        (..., D), in the dtype of `inputs`.
    """
    inputs_f32 = ops.cast(inputs, "float32")
    centered = inputs_f32 - ops.mean(inputs_f32, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    normal = centered * ops.rsqrt(variance + epsilon)
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    return ops.cast(normal * gamma + beta, inputs.dtype)


def sinusoids(positions, dim):
    """Sine and cosine of positions, always in float32.

    The first half of the features are sines and the second half cosines, with
    the same wavelengths 2 pi ... 10000 * 2 pi: a permutation of the paper's
    interleaved order, which makes no difference to a linear layer.

    Args:
        positions: (...) int or float.
        dim: even int, number of features.

    Returns:
        (..., dim) float32.

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and positive. Received: dim={dim}")
    angles = _angles(positions, dim)
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def _angles(positions, dim):
    """(...) -> (..., dim // 2) float32, in radians."""
    half = ops.arange(dim // 2, dtype="float32")
    rates = ops.exp(half * (-math.log(10000.0) / (dim // 2)))
    positions = ops.expand_dims(ops.cast(positions, "float32"), -1)
    return positions * rates


def rotary_embedding(vectors, positions):
    """Rotates pairs of features by angles that grow with the position.

        [a; b] -> [a cos(p r) - b sin(p r); a sin(p r) + b cos(p r)]
        r_i = 10000^(-2 i / H)

    The product of two rotated vectors depends on their distance alone. The
    pairs are a feature of the first half and one of the second.

    Args:
        vectors: (..., T, H) float, H even.
        positions: (T,) int or float; or more axes, which broadcast to those
            of `vectors`.

    Returns:
        (..., T, H), in the dtype of `vectors`; computed in float32.

    Reference:
        Su et al. 2021, arXiv:2104.09864, equation 34.
    """
    angles = _angles(positions, vectors.shape[-1])  # (T, H / 2)
    sines, cosines = ops.sin(angles), ops.cos(angles)
    first, second = ops.split(ops.cast(vectors, "float32"), 2, axis=-1)
    rotated = ops.concatenate(
        [first * cosines - second * sines, first * sines + second * cosines],
        axis=-1,
    )
    return ops.cast(rotated, vectors.dtype)


def with_padded_batch(function, *tensors):
    """Applies a function to a batch and a row of zeros, and drops that row.

    TensorFlow convolves and aligns no batch without rows, as a device may get.
    """

    def longer(x):
        return ops.concatenate([x, ops.zeros((1, *ops.shape(x)[1:]), x.dtype)])

    return function(*map(longer, tensors))[:-1]
