"""Live and finished hypotheses of a beam search."""

import math
from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END
from kseq.decoding.loops import INTEGER
from kseq.decoding.start_decoding import map_rows


class Beam(NamedTuple):
    """R live hypotheses and K finished ones of each of B items.

    The first K live ones are the beam, the best first. The greedy hypothesis,
    if there is one, comes after them. The model reads W rows of each item: no
    row for a hypothesis that cannot win any more, and one for two equal ones.
    Integers are int64.
    """

    tokens: tf.Tensor  # (B * W,), the last ones of the rows
    state: dict  # of tensors (B * W, ...), those shared (B, ...)
    rows: tf.Tensor  # (B, R), which row each live hypothesis has
    hypotheses: tf.Tensor  # (B * W,), which live hypothesis each row has
    ids: tf.Tensor  # (B, R, T), all so far
    log_probs: tf.Tensor  # (B, R), their sums, -inf if there is no hypothesis
    finished_ids: tf.Tensor  # (B, K, T)
    finished_scores: tf.Tensor  # (B, K), in each group the best first; or -inf
    num_finished: tf.Tensor  # (B,), also those that were not kept
    done: tf.Tensor  # (B,)


class Extensions(NamedTuple):
    """Live hypotheses with one more token each."""

    parents: tf.Tensor  # (B, C), which live hypothesis
    tokens: tf.Tensor  # (B, C), which token
    log_probs: tf.Tensor  # (B, C), of all tokens


def hypotheses_of_rows(beam):
    """(B, W), which live hypothesis each row of an item has."""
    items = tf.size(beam.done)
    width = tf.size(beam.hypotheses) // tf.maximum(items, 1)
    return tf.reshape(beam.hypotheses, (items, width))


def mask_finished(extensions):
    """The extensions, those that end with log-probability -inf."""
    has_ended = extensions.tokens == END
    log_probs = tf.where(has_ended, -math.inf, extensions.log_probs)
    return extensions._replace(log_probs=log_probs)


def concat_extensions(first, second):
    """The extensions of both, those of the first one before."""
    pairs = zip(first, second, strict=True)
    return Extensions(*(tf.concat(pair, axis=1) for pair in pairs))


def extended_ids(beam, extensions):
    """The ids of the extensions, (B, C, T + 1)."""
    ids = tf.gather(beam.ids, extensions.parents, batch_dims=1)
    return tf.concat([ids, extensions.tokens[:, :, None]], axis=2)


def equal_greedy(beam, extensions):
    """(B, R - 1), which extensions are equal to the last, the greedy one.

    Equal hypotheses share a row, so their equal extensions come from it.
    """
    rows = tf.gather(beam.rows, extensions.parents, batch_dims=1)
    tokens = extensions.tokens
    return (
        (extensions.log_probs[:, :-1] > -math.inf)
        & (rows[:, :-1] == rows[:, -1:])
        & (tokens[:, :-1] == tokens[:, -1:])
    )


def with_rows(beam, alive, state, needs_row, equal=None):
    """The beam of the next step, with as many rows as it needs.

    Args:
        beam: `Beam`.
        alive: `Extensions`, R, which the next beam has.
        state: dict of tensors (B * W, ...), after this step.
        needs_row: (B, R) bool, which of them the model must read.
        equal: (B, R - 1) bool, which of them share the row of the last one,
            or None.

    Returns:
        A `Beam` with all that depends on its rows.
    """
    rows, hypotheses = _rows(needs_row, equal)
    before = tf.gather(beam.rows, alive.parents, batch_dims=1)  # (B, R)
    before = tf.gather(before, hypotheses, batch_dims=1)  # (B, W)
    items, width = tf.unstack(tf.shape(hypotheses_of_rows(beam)))
    before += tf.cast(tf.range(items)[:, None] * width, INTEGER)
    before = tf.reshape(before, (-1,))
    tokens = tf.gather(alive.tokens, hypotheses, batch_dims=1)
    return beam._replace(
        tokens=tf.reshape(tokens, (-1,)),
        state=map_rows(lambda tensor: tf.gather(tensor, before), state),
        rows=rows,
        hypotheses=tf.reshape(hypotheses, (-1,)),
        ids=extended_ids(beam, alive),
    )


def _rows(needs_row, equal):
    """Which row each hypothesis has (B, R), and the reverse (B, W)."""
    if equal is not None:
        is_shared = tf.reduce_any(equal, axis=1, keepdims=True)
        of_last = needs_row[:, -1:] & ~is_shared
        needs_row = tf.concat([needs_row[:, :-1], of_last], axis=1)
    count = tf.cumsum(tf.cast(needs_row, INTEGER), axis=1)
    rows = tf.maximum(count - 1, 0)
    if equal is not None:
        shared = tf.where(equal, rows[:, :-1], 0)
        shared = tf.reduce_max(shared, axis=1, keepdims=True)
        last = tf.where(is_shared, shared, rows[:, -1:])
        rows = tf.concat([rows[:, :-1], last], axis=1)
    # How many there are is a shape, of which TensorFlow asks the GPU.
    width = tf.maximum(tf.cast(tf.reduce_max(count[:, -1]), tf.int32), 1)
    order = tf.argsort(tf.cast(~needs_row, INTEGER), axis=1, stable=True)
    return rows, tf.cast(order, INTEGER)[:, :width]
