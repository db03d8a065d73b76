"""The answers of a search: their length limits and their scores."""

from typing import NamedTuple

import tensorflow as tf

from kseq.user_error import check_integers, check_weights


class Hypotheses(NamedTuple):
    """The result of a search: N answers for each of B items, best first.

    Attributes:
        ids: (B, N, T) int32, END included, PAD after it. An answer that
            reached its length limit has no END.
        scores: (B, N) float32, the sum of the log-probabilities divided by
            the length penalty; -inf where there are fewer than N answers.
        lengths: (B, N) int32, tokens of each answer, END included.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    lengths: tf.Tensor


def length_limits(lengths, factor: float = 2.0, offset: int = 10) -> tf.Tensor:
    """Maximum answer length of each item, from its own length.

    factor * length + offset: an item has the same limit alone and in a batch
    with longer ones.

    Args:
        lengths: (B,) int, real tokens or frames of each source.
        factor: float, 0 or more.
        offset: int, 0 or more.

    Returns:
        (B,) int32.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> length_limits(tf.constant([3, 20])).numpy()
        array([16, 50], dtype=int32)
    """
    check_weights(factor=factor)
    check_integers(offset=offset, minimum=0)
    return tf.cast(factor * tf.cast(lengths, tf.float32), tf.int32) + offset


def penalized_scores(
    log_probs, lengths, length_penalty: float, penalty_offset: float = 5.0
) -> tf.Tensor:
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


def coverage_scores(coverage, mask, coverage_penalty: float) -> tf.Tensor:
    """coverage_penalty * (the sum over the source of log min(coverage, 1)).

    Args:
        coverage: (R, S) float32, the attention weights of all tokens of an
            answer, END included, summed.
        mask: (R, S) bool, True at real positions of the source.
        coverage_penalty: float, 0 or more.

    Returns:
        (R,) float32, 0 or less.

    Reference:
        Wu et al. 2016, arXiv:1609.08144, equation 14.
    """
    # Finite where nothing is covered.
    logs = tf.math.log(tf.clip_by_value(coverage, 1e-6, 1.0))
    return coverage_penalty * tf.reduce_sum(tf.where(mask, logs, 0.0), axis=1)


def sequence_scores(
    logits,
    labels,
    sample_weight,
    length_penalty: float = 1.0,
    penalty_offset: float = 5.0,
) -> tf.Tensor:
    """The scores that a search gives to these answers.

    Args:
        logits: (B, T, V) float, of a model that was fed the answers.
        labels: (B, T) int32, the answers, END included.
        sample_weight: (B, T), 1 or True at the tokens of the answers and 0 or
            False at padding.
        length_penalty: float, see `penalized_scores`.
        penalty_offset: float, see `penalized_scores`.

    Returns:
        (B,) float32, the sums of the log-probabilities divided by the length
        penalty.

    Raises:
        ArgumentError: if an argument is out of range.
    """
    check_weights(length_penalty=length_penalty, penalty_offset=penalty_offset)
    weights = tf.cast(sample_weight, tf.float32)
    log_probs = tf.reduce_sum(token_log_probs(logits, labels, weights), axis=1)
    lengths = tf.reduce_sum(weights, axis=1)
    return penalized_scores(log_probs, lengths, length_penalty, penalty_offset)


def token_log_probs(logits, labels, sample_weight) -> tf.Tensor:
    """Those of the tokens of answers, (B, T) float32, see `sequence_scores`."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)
    )
    return -losses * sample_weight
