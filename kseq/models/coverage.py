"""The doubly stochastic penalty on attention weights."""

import math
import numbers

from keras import ops

from kseq.user_error import ArgumentError


def check_coverage(coverage, attention):
    """Raises unless a penalty is a finite number that something can have.

    Args:
        coverage: float, its weight.
        attention: layer or None.

    Raises:
        ArgumentError: if it is not.
    """
    is_number = isinstance(coverage, numbers.Real)
    if not is_number or not 0 <= coverage < math.inf:
        raise ArgumentError(
            "coverage must be a finite number of at least 0. "
            f"Received: coverage={coverage}"
        )
    if coverage and attention is None:
        raise ArgumentError(
            f"coverage needs attention. Received: coverage={coverage}, "
            "attention=None"
        )


def coverage_penalty(weights, target_mask, memory_mask):
    """How far the attention to each position is from 1 over all steps.

        sum_i (1 - sum_t weights_ti)^2

    Args:
        weights: (B, T, S) float.
        target_mask: (B, T) bool, True at real steps.
        memory_mask: (B, S) bool, True at real positions.

    Returns:
        (B,) float32.

    Reference:
        Xu et al. 2015, arXiv:1502.03044, section 4.2.1.
    """
    weights = ops.cast(weights, "float32")
    steps = ops.cast(target_mask, "float32")[:, :, None]
    given = ops.sum(weights * steps, axis=1)  # (B, S)
    missing = ops.square(1 - given) * ops.cast(memory_mask, "float32")
    return ops.sum(missing, axis=1)


def with_coverage(losses, penalty):
    """Adds a number for each row to the losses of its tokens.

    Args:
        losses: `TokenLosses` of (B, T).
        penalty: (B,) float.

    Returns:
        `TokenLosses`.
    """
    weight = losses.weight
    if weight is None:
        weight = ops.ones_like(losses.loss)
    tokens = ops.sum(ops.cast(weight, "float32"), axis=1, keepdims=True)
    part = ops.cast(penalty, "float32")[:, None] / ops.maximum(tokens, 1.0)
    return losses._replace(loss=losses.loss + part)
