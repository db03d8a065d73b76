"""CTC scores of the beginnings of answers."""

from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.loops import INTEGER, arange

_NONE = -1e30  # logarithm of nothing; finite


class CTCMemory(NamedTuple):
    """The inputs of CTC for each item, the same at every step.

    Args:
        log_probs: (B, S, V) float32, of the labels of each position of the
            memory; that of PAD means none.
        mask: (B, S) bool, True at real positions, which come first.
    """

    log_probs: tf.Tensor
    mask: tf.Tensor


class CTCPrefixes(NamedTuple):
    """The beginnings of answers, R hypotheses; logarithms of probabilities.

    Args:
        label: (R, S + 1), that the first s positions spell the beginning and
            the last of them is its last label.
        blank: (R, S + 1), the same where the last of them is none.
        last: (R,) int64, the last label, START if there is none.
        score: (R,), that an answer begins like this.
    """

    label: tf.Tensor
    blank: tf.Tensor
    last: tf.Tensor
    score: tf.Tensor


def empty_prefixes(memory):
    """`CTCPrefixes` without any label, one for each item of a `CTCMemory`."""
    blank = _cumulated(memory.log_probs[:, :, PAD])
    batch = tf.shape(blank)[0]
    return CTCPrefixes(
        label=tf.fill(tf.shape(blank), _NONE),
        blank=blank,
        last=tf.fill([batch], tf.constant(START, INTEGER)),
        score=tf.zeros([batch]),
    )


def ctc_prefix_scores(memory, prefixes, token_ids):
    """Appends a label to each beginning, and scores all that may follow.

    The probability of a beginning is that of all ways to read it and anything
    after it. So the scores of the labels of an answer, END included, sum to
    the log-probability that CTC gives to the answer.

    Args:
        memory: `CTCMemory` of B items.
        prefixes: `CTCPrefixes` of R hypotheses, those of an item consecutive.
        token_ids: (R,) int, the labels; START appends nothing.

    Returns:
        Log-probabilities of the next label (R, V) float32, and the longer
        `CTCPrefixes`.

    Reference:
        Graves 2008, Supervised Sequence Labelling with Recurrent Neural
        Networks, section 7.5.2; Hori et al. 2017, aclanthology.org/P17-1048,
        section 3.
    """
    token_ids = tf.cast(token_ids, INTEGER)
    rows, items = tf.shape(token_ids)[0], tf.shape(memory.mask)[0]
    log_probs, mask = (
        tf.repeat(tensor, rows // tf.maximum(items, 1), axis=0)
        for tensor in memory
    )
    prefixes = _appended(prefixes, token_ids, log_probs, mask)

    # What follows begins after s positions, of which any may be the last.
    ends = tf.reduce_logsumexp([prefixes.label, prefixes.blank], axis=0)
    real = tf.where(mask, 0.0, _NONE)
    begins = tf.reduce_logsumexp(
        (ends[:, :-1] + real)[:, :, None] + log_probs, axis=1
    )
    # The same label again needs a position without one between them.
    own = tf.gather(log_probs, prefixes.last, axis=2, batch_dims=1)
    again = tf.reduce_logsumexp(prefixes.blank[:, :-1] + real + own, axis=1)
    labels = arange(tf.shape(log_probs)[2])
    begins = tf.where(labels == prefixes.last[:, None], again[:, None], begins)
    lengths = tf.math.count_nonzero(mask, axis=1)
    whole = tf.gather(ends, lengths, axis=1, batch_dims=1)
    begins = tf.where(labels == END, whole[:, None], begins)
    # Rounding must not let a longer beginning be more likely.
    scores = tf.minimum(begins - prefixes.score[:, None], 0.0)
    return tf.maximum(scores, _NONE), prefixes


def _appended(prefixes, token_ids, log_probs, mask):
    """`prefixes` with one more label each, or as they are after START."""
    own = tf.gather(log_probs, token_ids, axis=2, batch_dims=1)  # (R, S)
    repeats = (token_ids == prefixes.last)[:, None]
    before = tf.where(
        repeats,
        prefixes.blank,
        tf.reduce_logsumexp([prefixes.label, prefixes.blank], axis=0),
    )
    label = _recurrence(before, own)
    blank = _recurrence(label, log_probs[:, :, PAD])
    score = tf.reduce_logsumexp(
        before[:, :-1] + own + tf.where(mask, 0.0, _NONE), axis=1
    )
    longer = CTCPrefixes(label, blank, token_ids, score)
    is_first = token_ids == START
    return CTCPrefixes(
        *(
            tf.where(
                tf.reshape(is_first, [-1] + [1] * (x.shape.rank - 1)), x, y
            )
            for x, y in zip(prefixes, longer, strict=True)
        )
    )


def _recurrence(added, factors):
    """x_0 = 0, x_s = (x_{s-1} + added_{s-1}) * factor_s, in logarithms.

    (R, S + 1), (R, S) -> (R, S + 1). Divided by the product of the factors,
    each step is a sum.
    """
    products = _cumulated(factors)
    sums = tf.math.cumulative_logsumexp(
        tf.maximum(added - products, _NONE)[:, :-1], axis=1
    )
    steps = tf.maximum(sums + products[:, 1:], _NONE)
    return tf.concat([tf.fill((tf.shape(steps)[0], 1), _NONE), steps], axis=1)


def _cumulated(values):
    """Sums of the first s values, s from 0: (R, S) -> (R, S + 1)."""
    return tf.pad(tf.cumsum(values, axis=1), [[0, 0], [1, 0]])
