"""No repeated n-grams."""

import dataclasses
import math

import tensorflow as tf

from kseq.check_integers import check_integers
from kseq.decoding.while_loop import INTEGER


@dataclasses.dataclass(frozen=True)
class NoRepeatedNgrams:
    """No n tokens in a row are generated twice in one answer.

    Args:
        n: int, 1 or more; 1 allows every token once.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32.

    Raises:
        ValueError: if `n` is not a positive integer.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> so_far = tf.constant([[4, 5, 1, 4]])  # 4 5 would be repeated
        >>> np.exp(NoRepeatedNgrams(2)(log_probs, so_far)).round(1)
        array([[0.1, 0.1, 0.1, 0.1, 0.2, 0. ]], dtype=float32)

    Reference:
        Paulus et al. 2018, arXiv:1705.04304, section 2.5.
    """

    n: int

    is_row_wise = True

    def __post_init__(self):
        check_integers(n=self.n)

    def __call__(self, log_probs, ids):
        ids = tf.cast(ids, INTEGER)
        num_rows, length = tf.unstack(tf.shape(ids))
        n = tf.minimum(self.n, length + 1)
        count = length - n + 1  # of the n-grams so far
        places = tf.range(count)[:, None] + tf.range(n)
        ngrams = tf.gather(ids, places, axis=1)  # (R, count, n)
        last = ids[:, None, count:]  # (R, 1, n - 1)
        begins_alike = tf.reduce_all(ngrams[:, :, :-1] == last, axis=-1)
        rows = tf.cast(tf.range(num_rows), INTEGER)[:, None]
        rows = tf.repeat(rows, count, axis=1)
        return tf.tensor_scatter_nd_min(
            log_probs,
            tf.stack([rows, ngrams[:, :, -1]], axis=-1),
            tf.where(begins_alike, -math.inf, math.inf),
        )

    def get_config(self):
        return {"n": self.n}
