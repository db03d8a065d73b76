"""Log-probabilities of the next token."""

import math

import tensorflow as tf

from kseq.control_tokens import END, PAD, START


def next_log_probs(log_probs, ids, constraints=(), prefix=None):
    """Log-probabilities of the next token that a search reads.

    PAD and START are never generated: they get -inf. The others keep the
    probability that the model gave them, so that scoring an answer afterwards
    finds the same numbers. Then the constraints apply, in their order, except
    where a forced prefix determines the token. A row that this leaves with no
    possible token ends.

    Args:
        log_probs: (R, V) float32, those of the model.
        ids: (R, T) int64, the tokens so far.
        constraints: callables (log_probs (R, V), ids (R, T)) -> (R, V).
        prefix: ForcedPrefix, or None.

    Returns:
        (R, V) float32.
    """
    tokens = tf.range(tf.shape(log_probs)[-1])
    never = (tokens == PAD) | (tokens == START)
    own = tf.where(never, -math.inf, log_probs)
    if not constraints and prefix is None:
        return own

    log_probs = own
    for constraint in constraints:
        log_probs = constraint(log_probs, tf.cast(ids, tf.int32))
    if prefix is not None:
        is_free = prefix.tokens(tf.shape(ids)[0], tf.shape(ids)[1]) == PAD
        log_probs = tf.where(is_free[:, None], log_probs, prefix(own, ids))
    possible = tf.reduce_any(log_probs > -math.inf, axis=-1, keepdims=True)
    # Finite, so that a search can choose it.
    only_end = tf.where(tokens == END, tf.maximum(own, -1e30), -math.inf)
    return tf.where(possible, log_probs, only_end)
