"""The losses that `ExactModel` is trained on."""

from typing import Any, NamedTuple


class TokenLosses(NamedTuple):
    """One loss for each token or for each row, tensors of one shape.

    Args:
        loss: (...) float.
        weight: (...) float, 0 where there is no token; None counts all as 1.
        likelihood: (...) float, negative log-likelihood, for the metric
            `perplexity`; or None.
        right: (...) bool, for the metric `accuracy`; or None.
    """

    loss: Any
    weight: Any = None
    likelihood: Any = None
    right: Any = None
