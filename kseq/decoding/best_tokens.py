"""The likeliest next tokens."""

import math

import tensorflow as tf

from kseq.control_tokens import PAD, START
from kseq.decoding.top_k import top_k


def best_tokens(logits, width):
    """What `top_k(next_log_probs(log_softmax(logits)), width)` gives.

    It reads the vocabulary twice, and writes no log-probabilities of it.

    Args:
        logits: (R, V) float32.
        width: int, at most V.

    Returns:
        log-probabilities (R, width), descending, and tokens (R, width) int32.
    """
    # PAD and START, which are never generated, may be among the best.
    best, tokens = top_k(logits, min(width + 2, logits.shape[-1]))
    highest = best[:, :1]
    total = tf.reduce_sum(tf.exp(logits - highest), axis=-1, keepdims=True)
    log_probs = best - highest - tf.math.log(total)
    never = (tokens == PAD) | (tokens == START)
    log_probs = tf.where(never, -math.inf, log_probs)
    log_probs, places = tf.math.top_k(log_probs, width)
    return log_probs, tf.gather(tokens, places, batch_dims=1)
