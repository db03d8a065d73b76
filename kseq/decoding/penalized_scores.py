"""The length penalty."""

import tensorflow as tf


def penalized_scores(log_probs, lengths, length_penalty):
    """log_probs / ((5 + length) / 6) ** length_penalty.

    Args:
        log_probs: float32, sums over whole hypotheses.
        lengths: int32, their tokens, END included.
        length_penalty: float, 0 or more; 0 leaves the sums as they are, and
            the larger it is the less a long hypothesis is held back.

    Reference:
        Wu et al. 2016, arXiv:1609.08144, equation 14.
    """
    lengths = tf.cast(lengths, tf.float32)
    return log_probs / ((5.0 + lengths) / 6.0) ** length_penalty
