"""Log-probabilities of the next token."""

import math

import tensorflow as tf

from kseq.control_tokens import PAD, START


def next_log_probs(logits):
    """Log-probabilities of the next token, in float32: (B, V) -> (B, V).

    PAD and START are never generated: theirs is -inf. The others keep the
    probability that the model gave them, so that scoring an answer afterwards
    finds the same numbers.
    """
    ids = tf.range(tf.shape(logits)[-1])
    never = (ids == PAD) | (ids == START)
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    return tf.where(never, -math.inf, log_probs)
