"""The most likely next tokens."""

import math

import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.decoding.top_k import top_k


def best_tokens(logits, width):
    """What `top_k(next_log_probs(log_softmax(logits)), width)` gives.

    The normalizer comes from a softmax, which takes TensorFlow half the time of
    the sum of exponentials.

    Args:
        logits: (R, V) float32.
        width: int, at most V.

    Returns:
        log-probabilities (R, width), descending, and tokens (R, width) int64.
    """
    # PAD and START, which are never generated, may be among the best.
    best, tokens = top_k(logits, min(width + 2, logits.shape[-1]))
    # The largest probability is at least 1 / V: its logarithm is exact.
    highest = tf.gather(tf.nn.softmax(logits), tokens[:, :1], batch_dims=1)
    log_probs = best - best[:, :1] + tf.math.log(highest)
    never = (tokens == PAD) | (tokens == START)
    log_probs = tf.where(never, -math.inf, log_probs)
    log_probs, places = tf.math.top_k(log_probs, width)
    return log_probs, tf.gather(tokens, places, batch_dims=1)
