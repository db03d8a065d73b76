"""A least length."""

import dataclasses
import math

import tensorflow as tf

from kseq.check_integers import check_integers
from kseq.control_tokens import END
from kseq.decoding.while_loop import INTEGER


@dataclasses.dataclass(frozen=True)
class LeastLength:
    """A minimum length of answers.

    The length limit of an item takes precedence.

    Args:
        length: int, minimum number of tokens of an answer, END included, as in
            `Hypotheses.lengths`.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `length` is negative or not an integer.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> np.exp(LeastLength(3)(log_probs, tf.constant([[4]]))).round(1)
        array([[0.1, 0.1, 0.1, 0. , 0.2, 0.4]], dtype=float32)
    """

    length: int

    is_row_wise = True

    def __post_init__(self):
        check_integers(length=self.length, minimum=0)

    def __call__(self, log_probs, ids):
        is_end = tf.range(tf.shape(log_probs)[-1]) == END
        # On a GPU, TensorFlow copies int32 to the host for its shape.
        is_short = tf.shape(tf.cast(ids, INTEGER))[1] + 1 < self.length
        return tf.where(is_end & is_short, -math.inf, log_probs)

    def get_config(self):
        return {"length": self.length}
