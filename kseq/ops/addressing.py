"""Addressing of a memory by content and by location, reading and writing.

Shapes: B batch, N slots of the memory, M features of a slot, H heads. A
weighting is a distribution over the slots. All is computed in float32.

Reference:
    Graves et al. 2014, arXiv:1410.5401, section 3.
"""

from keras import ops

_SMALLEST = 1e-30  # a weight below it has the logarithm of it


def content_weights(memory, keys, strengths):
    """Weightings by the similarity of each slot to a key, equations 5 and 6.

    Args:
        memory: (B, N, M) float32.
        keys: (B, H, M) float32.
        strengths: (B, H) float32, at least 0; beta in the paper.

    Returns:
        (B, H, N): softmax of strength times cosine. The cosine with a vector
        of zeros is 0.
    """
    cosines = ops.matmul(_unit(keys), ops.swapaxes(_unit(memory), 1, 2))
    return ops.softmax(strengths[:, :, None] * cosines, axis=-1)


def _unit(vectors):
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(squares + 1e-12)


def interpolate(content, last, gates):
    """Between weightings by content and the last ones, equation 7.

    (B, H, N), (B, H, N), (B, H) -> (B, H, N): content with a gate of 1.
    """
    gates = gates[:, :, None]
    return gates * content + (1 - gates) * last


def shift_weights(weights, shifts):
    """Circular convolution of each weighting, equation 8.

    Args:
        weights: (B, H, N) float32.
        shifts: (B, H, 2 R + 1) float32, how much of a weighting moves by -R,
            ..., 0, ..., R slots.

    Returns:
        (B, H, N), slot i from slot i - r with the share of r.
    """
    furthest = shifts.shape[-1] // 2
    return sum(
        shifts[:, :, place, None] * ops.roll(weights, place - furthest, axis=-1)
        for place in range(2 * furthest + 1)
    )


def sharpen(weights, powers):
    """Weightings to a power, divided by their sum, equation 9.

    (B, H, N), (B, H), at least 1 -> (B, H, N).
    """
    logarithms = ops.log(ops.maximum(weights, _SMALLEST))
    return ops.softmax(powers[:, :, None] * logarithms, axis=-1)


def read_slots(memory, weights):
    """(B, N, M), (B, H, N) -> the vector of each head, (B, H, M), eq. 2."""
    return ops.matmul(weights, memory)


def write_slots(memory, weights, erase, add):
    """The memory after all heads erased, and then all added, eqs. 3 and 4.

    Args:
        memory: (B, N, M) float32.
        weights: (B, H, N) float32.
        erase: (B, H, M) float32, from 0 to 1.
        add: (B, H, M) float32.

    Returns:
        (B, N, M). The order of the heads makes no difference.
    """
    for head in range(erase.shape[1]):
        kept = 1 - weights[:, head, :, None] * erase[:, head, None, :]
        memory = memory * kept
    return memory + ops.matmul(ops.swapaxes(weights, 1, 2), add)
