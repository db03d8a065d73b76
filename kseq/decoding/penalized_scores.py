"""The length penalty."""

import tensorflow as tf


def penalized_scores(log_probs, lengths, length_penalty, penalty_offset=5.0):
    """log_probs / ((offset + length) / (offset + 1)) ** length_penalty.

    Args:
        log_probs: float32, sums over whole hypotheses.
        lengths: int32, their tokens, END included.
        length_penalty: float, 0 or more; 0 leaves the sums as they are, and
            larger values favour longer hypotheses.
        penalty_offset: float, 0 or more; 5 is the penalty of Wu et al., 0 is
            length ** length_penalty.

    Reference:
        Wu et al. 2016, arXiv:1609.08144, equation 14.
    """
    lengths = tf.maximum(tf.cast(lengths, tf.float32), 1.0)
    base = (penalty_offset + lengths) / (penalty_offset + 1.0)
    # Finite, because -inf divided by infinity is not a number.
    return log_probs / tf.minimum(base**length_penalty, tf.float32.max)
