"""Log-probabilities of the next token."""

import math

import tensorflow as tf

from kseq.control_tokens import END, PAD, START


def next_log_probs(logits, ids, constraints=(), prefix=None):
    """Log-probabilities of the next token, in float32: (R, V) -> (R, V).

    PAD and START are never generated: theirs is -inf. The others keep the
    probability that the model gave them, so that scoring an answer afterwards
    finds the same numbers. Then the constraints apply, in their order, except
    where a forced prefix determines the token. A row that this leaves with no
    possible token ends.

    Args:
        logits: (R, V) float.
        ids: (R, T) int32, the tokens so far.
        constraints: callables (log_probs (R, V), ids (R, T)) -> (R, V).
        prefix: ForcedPrefix, or None.
    """
    tokens = tf.range(tf.shape(logits)[-1])
    never = (tokens == PAD) | (tokens == START)
    own = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    own = tf.where(never, -math.inf, own)
    if not constraints and prefix is None:
        return own

    log_probs = own
    for constraint in constraints:
        log_probs = constraint(log_probs, ids)
    if prefix is not None:
        is_free = prefix.tokens(tf.shape(ids)[0], tf.shape(ids)[1]) == PAD
        log_probs = tf.where(is_free[:, None], log_probs, prefix(own, ids))
    possible = tf.reduce_any(log_probs > -math.inf, axis=-1, keepdims=True)
    # Finite, so that a search can choose it.
    only_end = tf.where(tokens == END, tf.maximum(own, -1e30), -math.inf)
    return tf.where(possible, log_probs, only_end)
