"""Weights that are numbers."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from kseq.user_error import UserError


def check_finite(owner: Any, weights: Iterable[Any]) -> None:
    """UserError if a weight is NaN or infinite: answers would mean nothing.

    Args:
        owner: str or path, what has them, for the message.
        weights: tensors or variables.
    """
    for weight in weights:
        value = tf.convert_to_tensor(weight)
        if value.dtype.is_floating and not tf.reduce_all(
            tf.math.is_finite(value)
        ):
            raise UserError(
                f"{owner} has weights that are NaN or infinite: its answers "
                "would be meaningless."
            )
