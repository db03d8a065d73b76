"""Log-probabilities of the next token, and the most likely tokens."""

import math

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.loops import INTEGER, arange

_WIDTHS = (40, 32, 50, 64, 25, 100, 128)  # of a chunk: one without padding


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
        log_probs = tf.where(is_free[:, None], log_probs, own)
        log_probs = prefix(log_probs, ids)
    possible = tf.reduce_any(log_probs > -math.inf, axis=-1, keepdims=True)
    # Finite, so that a search can choose it.
    only_end = tf.where(tokens == END, tf.maximum(own, -1e30), -math.inf)
    return tf.where(possible, log_probs, only_end)


def top_k_tokens(logits, width):
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


def top_k(values, k):
    """`tf.math.top_k`, several times faster on rows of a vocabulary.

    The k largest values are in the k chunks that have the largest maxima:
    only these are searched.

    Args:
        values: (B, V) float, V static.
        k: int, at most V.

    Returns:
        values (B, k), descending, and their positions (B, k) int64.
    """
    size = values.shape[-1]
    width = next((n for n in _WIDTHS if size % n == 0), _WIDTHS[0])
    chunks = -(-size // width)
    if chunks <= k:
        values, places = tf.math.top_k(values, k)
        return values, tf.cast(places, INTEGER)

    if size % width:
        shape = (tf.shape(values)[0], chunks * width - size)
        padding = tf.fill(shape, tf.constant(-math.inf, values.dtype))
        values = tf.concat([values, padding], axis=1)
    values = tf.reshape(values, (-1, chunks, width))
    _, best = tf.math.top_k(tf.reduce_max(values, axis=-1), k)
    best = tf.cast(best, INTEGER)
    searched = tf.gather(values, best, batch_dims=1)  # (B, k, width)
    positions = best[:, :, None] * width + arange(width)
    positions = tf.reshape(positions, (-1, k * width))
    values, places = tf.math.top_k(tf.reshape(searched, (-1, k * width)), k)
    places = tf.gather(positions, places, batch_dims=1)
    return values, tf.minimum(places, size - 1)  # not in the padding
