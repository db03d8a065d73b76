"""Answers, token by token."""

from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.hypotheses import Hypotheses, penalized_scores
from kseq.decoding.loops import INTEGER
from kseq.decoding.start_decoding import (
    are_row_wise,
    map_rows,
    start_decoding,
)
from kseq.decoding.stepwise_search import StepwiseSearch


class _Generation(NamedTuple):
    tokens: tf.Tensor  # (B * N,) int64, the last ones
    ids: tf.Tensor  # (B * N, T) int64, all so far
    log_probs: tf.Tensor  # (B * N,), their sum
    done: tf.Tensor  # (B * N,)
    state: dict


def generate(search, model, choose, has_prefix, answers=1, n_best=1):
    """N answers for each item, token after token, none revised.

    Args:
        search: see `start_decoding`; has `length_penalty` and
            `penalty_offset`.
        model: has `encode` and `decode_step`.
        choose: callable, log-probabilities (B * N, V), the position of the
            token, an int32 scalar, and `params` of the items -> token ids
            (B * N,) int64. None for the most likely.
        has_prefix: bool, whether the items have prefixes.
        answers: int, N.
        n_best: int, how many of them are wanted.

    Returns:
        `StepwiseSearch`.
    """
    width = None if choose else 1
    start, step = start_decoding(search, model, has_prefix, width)

    def advance(last, memory):
        found, state = step(last.tokens, last.ids, last.state, memory)
        length = tf.shape(last.ids)[1]
        if choose:
            tokens = choose(found, length, memory.items.params)
            gained = tf.gather(found, tokens, batch_dims=1)
        else:
            gained, tokens = (tensor[:, 0] for tensor in found)
        tokens = tf.where(last.done, tf.constant(PAD, INTEGER), tokens)
        limits = tf.repeat(memory.items.max_lengths, answers)
        full = tf.cast(length + 1, INTEGER)
        return _Generation(
            tokens=tokens,
            ids=tf.concat([last.ids, tokens[:, None]], axis=1),
            log_probs=last.log_probs + tf.where(last.done, 0.0, gained),
            done=last.done | (tokens == END) | (limits <= full),
            state=state,
        )

    def of_items(rows):
        shape = tf.shape(rows)
        shape = tf.concat([[shape[0] // answers, answers], shape[1:]], 0)
        found = tf.reshape(rows, shape)
        if not tf.executing_eagerly():
            found.set_shape((None, answers, *rows.shape[1:]))
        return found

    def first(items):
        state, memory = start(items)
        num_rows = tf.size(items.max_lengths) * answers
        generation = _Generation(
            tokens=tf.fill((num_rows,), tf.constant(START, INTEGER)),
            ids=tf.zeros((num_rows, 0), INTEGER),
            log_probs=tf.zeros((num_rows,)),
            done=tf.repeat(items.max_lengths <= 0, answers),
            state=map_rows(
                lambda tensor: tf.repeat(tensor, answers, axis=0), state
            ),
        )
        return generation, memory

    def contenders(generation):
        ids = of_items(generation.ids)
        return ids, tf.ones(tf.shape(ids)[:2], tf.bool)

    def hypotheses(ids, log_probs):
        lengths = tf.math.count_nonzero(ids != PAD, axis=2, dtype=tf.int32)
        scores = penalized_scores(
            log_probs,
            lengths,
            search.length_penalty,
            search.penalty_offset,
        )
        found = Hypotheses(tf.cast(ids, tf.int32), scores, lengths)
        if answers == 1:
            return found
        _, order = tf.math.top_k(found.scores, n_best)
        return Hypotheses(
            *(tf.gather(tensor, order, batch_dims=1) for tensor in found)
        )

    return StepwiseSearch(
        start=first,
        advance=advance,
        is_done=lambda x: tf.reduce_all(of_items(x.done), axis=1),
        answers=lambda x: (of_items(x.ids), of_items(x.log_probs)),
        contenders=contenders,
        hypotheses=hypotheses,
        num_answers=answers,
        is_splittable=are_row_wise(search.constraints),
    )
