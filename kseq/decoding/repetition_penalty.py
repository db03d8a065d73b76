"""The repetition penalty."""

import dataclasses

import tensorflow as tf

from kseq.decoding.search_fields import check_number
from kseq.decoding.while_loop import INTEGER


@dataclasses.dataclass(frozen=True)
class RepetitionPenalty:
    """Makes tokens that the answer already contains less likely.

    Their log-probabilities are multiplied by the penalty: p becomes
    p ** penalty. The paper divides positive logits by it; log-probabilities
    are never positive, so the penalty never makes a token more likely here. A
    token that is nearly certain stays so: `NoRepeatedNgrams` breaks every
    loop.

    The searches choose by these numbers and their scores are sums of them: an
    answer with repeated tokens has a lower score than the model alone gives
    it. END is never in an answer that is still growing, so it never changes.

    Args:
        penalty: float, 1 or more; 1 changes nothing, the paper's value is 1.2.

    Call arguments:
        log_probs: (R, V) float32.
        ids: (R, T) int32, the tokens so far.

    Returns:
        (R, V) float32, not normalized.

    Raises:
        ValueError: if `penalty` is not a number from 1 to 1000.

    Example:
        >>> log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.1, 0.2, 0.4]])
        >>> so_far = tf.constant([[5, 5]])
        >>> np.exp(RepetitionPenalty(2.0)(log_probs, so_far)).round(2)
        array([[0.1 , 0.1 , 0.1 , 0.1 , 0.2 , 0.16]], dtype=float32)

    Reference:
        Keskar et al. 2019, arXiv:1909.05858, section 4.1.
    """

    penalty: float

    is_row_wise = True

    def __post_init__(self):
        check_number("penalty", self.penalty, 1, 1000)

    def __call__(self, log_probs, ids):
        ids = tf.cast(ids, INTEGER)
        rows = tf.cast(tf.range(tf.shape(ids)[0]), INTEGER)[:, None]
        rows = tf.repeat(rows, tf.shape(ids)[1], axis=1)
        penalized = tf.gather(log_probs, ids, batch_dims=1) * self.penalty
        return tf.tensor_scatter_nd_min(
            log_probs, tf.stack([rows, ids], axis=-1), penalized
        )

    def get_config(self):
        return {"penalty": self.penalty}
