"""The extensions of a beam that count, in one group or several."""

import functools
import math

import tensorflow as tf

from kseq.decoding.beam import (
    Extensions,
    concat_extensions,
    extended_ids,
    hypotheses_of_rows,
    mask_finished,
)
from kseq.decoding.loops import INTEGER, arange
from kseq.decoding.phrases import in_turn, progress


def best_extensions(
    beam,
    log_probs,
    tokens,
    *,
    size,
    num_groups,
    diversity,
    required,
    surfaces,
):
    """The K best extensions, the K best that do not end, the greedy one.

    At most K of the 2 K best end. For them it is enough to look at the K + 1
    most likely tokens of each row; required phrases add their next tokens.

    Args:
        beam: `Beam` with R live hypotheses of each of B items.
        log_probs: (B * W, K + 1), of the most likely tokens of each row.
        tokens: (B * W, K + 1) int64.
        size: int, K.
        num_groups: int, see `BeamSearch`.
        diversity: float, see `BeamSearch`.
        required: (B, N, A, L) int64, phrases, or None.
        surfaces: see `Phrases`, with required phrases.

    Returns:
        `Extensions` (B, K), `Extensions` (B, K) and `Extensions` (B, R - K),
        those of a group consecutive, the best first.
    """
    width = tokens.shape[-1]
    if width is None:
        width = tf.shape(tokens)[-1]
    shape = (*tf.unstack(tf.shape(hypotheses_of_rows(beam))), width)
    log_probs, tokens = (
        tf.gather(tf.reshape(tensor, shape), beam.rows, batch_dims=1)
        for tensor in (log_probs, tokens)
    )  # (B, R, width)
    log_probs += beam.log_probs[:, :, None]

    found, each = [], size // num_groups
    flat = (-1, each * width)
    for start in range(0, size, each):
        group = slice(start, start + each)
        lowered = log_probs[:, group]
        for _, alive in found:  # of the groups before
            same = tokens[:, group, :, None] == alive.tokens[:, None, None]
            same &= (alive.log_probs > -math.inf)[:, None, None]
            count = tf.math.count_nonzero(same, axis=3, dtype=tf.float32)
            lowered -= diversity * count
        candidates = Extensions(
            parents=start + arange(each * width) // tf.cast(width, INTEGER),
            tokens=tf.reshape(tokens[:, group], flat),
            log_probs=tf.reshape(log_probs[:, group], flat),
        )
        lowered = tf.reshape(lowered, flat)
        if required is None:
            count = min(2 * each, lowered.shape[1])
            keys, places = tf.math.top_k(lowered, count)
        else:
            met = _met(beam, candidates, required, surfaces)
            keys, places = _in_turn(lowered, met, each)
        found.append(_selected(candidates, keys, places, each))
    best, alive = (
        functools.reduce(concat_extensions, of_groups)
        for of_groups in zip(*found, strict=True)
    )

    of_greedy = tokens[:, size:, 0]  # (B, R - K)
    greedy = Extensions(
        parents=tf.fill(tf.shape(of_greedy), tf.constant(size, INTEGER)),
        tokens=of_greedy,
        log_probs=log_probs[:, size:, 0],
    )
    return best, alive, greedy


def _met(beam, candidates, required, surfaces):
    """(B, C) int64, how many tokens of phrases the candidates have."""
    shape = tf.shape(candidates.tokens)
    parents = tf.broadcast_to(candidates.parents, shape)
    ids = extended_ids(beam, candidates._replace(parents=parents))
    ids = tf.reshape(ids, (-1, tf.shape(ids)[2]))
    met, _ = progress(required, ids, surfaces)
    return tf.reshape(met, shape)


def _in_turn(log_probs, met, size):
    """Falling numbers and positions of the 2 K candidates that count."""
    places = in_turn(log_probs, met)[:, : 2 * size]
    ranks = tf.cast(tf.range(tf.shape(places)[1]), tf.float32)
    return tf.broadcast_to(-ranks, tf.shape(places)), places


def _selected(candidates, keys, places, size):
    """The K best of some candidates, and the K best that do not end."""
    best = Extensions(
        parents=tf.gather(candidates.parents, places),
        tokens=tf.gather(candidates.tokens, places, batch_dims=1),
        log_probs=tf.gather(candidates.log_probs, places, batch_dims=1),
    )
    alive = mask_finished(best)
    keys = tf.where(alive.log_probs == -math.inf, -math.inf, keys)
    _, places = tf.math.top_k(keys, size)
    alive = Extensions(
        *(tf.gather(tensor, places, batch_dims=1) for tensor in alive)
    )
    return Extensions(*(tensor[:, :size] for tensor in best)), alive
