"""What `ExactModel` is trained on."""

from typing import Any, NamedTuple


class TokenLosses(NamedTuple):
    """One loss for each token or for each row, tensors of one shape.

    Args:
        loss: (...) float.
        weight: (...) float, 0 where there is no token; None counts all as 1.
        likelihood: (...) float, negative log-likelihood, of which `perplexity`
            is reported; or None.
        right: (...) bool, of which `accuracy` is reported; or None.
    """

    loss: Any
    weight: Any = None
    likelihood: Any = None
    right: Any = None
