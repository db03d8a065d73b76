"""Checks of the arguments of models, before any layer is made."""

import numbers


def check_sizes(**sizes):
    """Raises unless all are positive integers.

    Args:
        **sizes: the arguments by their names.

    Raises:
        ValueError: that names the first wrong one.
    """
    for name, size in sizes.items():
        if not isinstance(size, numbers.Integral) or size < 1:
            raise ValueError(
                f"{name} must be a positive int. Received: {name}={size}"
            )


def check_rates(**rates):
    """Raises unless all are from 0 to 1, and numbers.

    Args:
        **rates: the arguments by their names.

    Raises:
        ValueError: that names the first wrong one.
    """
    for name, rate in rates.items():
        if not isinstance(rate, numbers.Real) or not 0 <= rate <= 1:
            raise ValueError(
                f"{name} must be from 0 to 1. Received: {name}={rate}"
            )


def check_heads(model_dim, num_heads):
    """Raises unless heads divide the features evenly.

    Args:
        model_dim: int.
        num_heads: int.

    Raises:
        ValueError: if they do not.
    """
    if model_dim % num_heads:
        raise ValueError(
            "model_dim must be a multiple of num_heads. "
            f"Received: model_dim={model_dim}, num_heads={num_heads}"
        )
