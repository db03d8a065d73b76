"""Beam search."""

import math
from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.growing_loop import growing_loop
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.next_log_probs import next_log_probs
from kseq.decoding.penalized_scores import penalized_scores
from kseq.decoding.top_k import top_k


class _Search(NamedTuple):
    """B items, K live hypotheses and K places for finished ones each."""

    tokens: tf.Tensor  # (B * K,), the last ones of the live hypotheses
    ids: tf.Tensor  # (B, K, T), all so far
    log_probs: tf.Tensor  # (B, K), their sums, the best first
    finished_ids: tf.Tensor  # (B, K, T)
    finished_scores: tf.Tensor  # (B, K), the best first, -inf if empty
    done: tf.Tensor  # (B,)
    state: dict  # of tensors (B * K, ...)


class _Candidates(NamedTuple):
    """Live hypotheses with one token more, the best first."""

    parents: tf.Tensor  # (B, C), which live hypothesis
    tokens: tf.Tensor  # (B, C), and which token
    log_probs: tf.Tensor  # (B, C)


def beam_search(
    model,
    source_ids,
    max_lengths,
    beam_size=4,
    length_penalty=1.0,
    n_best=1,
):
    """The best finished hypotheses that a beam comes across.

    At every step the K live hypotheses are extended by every token. Of the K
    best extensions those that end are finished, and go to a pool of their
    own, where only a better one takes their place. The K best that do not end
    live on. An item is done when K hypotheses have finished, when no live one
    can still reach the n best, or at its length limit; if fewer than n have
    finished by then, the best live ones come after them. A beam of one is
    greedy search.

    Args:
        model: anything with `encode` and `decode_step`.
        source_ids: (B, S) int32.
        max_lengths: (B,) int32, most tokens of each answer, END included.
        beam_size: int, K.
        length_penalty: float, 0 or more, see `penalized_scores`.
        n_best: int, answers for each item, at most `beam_size`.

    Returns:
        Hypotheses, N = n_best.

    Raises:
        ValueError: if `n_best` is not in 1 ... `beam_size`, or
            `length_penalty` is negative.

    Reference:
        Kasai et al. 2022, arXiv:2204.05424, "first come, first served".
    """
    _check_arguments(beam_size, length_penalty, n_best)
    memory, state = _split_memory(model.encode(source_ids))

    def advance(search):
        logits, state = model.decode_step(
            search.tokens, {**search.state, **memory}
        )
        _, state = _split_memory(state)
        candidates = _best_candidates(search, next_log_probs(logits))

        ids, scores = _with_ended(search, candidates, length_penalty)
        search = _with_living(search, candidates, state)
        search = search._replace(finished_ids=ids, finished_scores=scores)
        done = _is_done(search, max_lengths, length_penalty, n_best)
        return search._replace(done=search.done | done)

    start = _start(state, max_lengths, beam_size)
    search = growing_loop(lambda x: ~tf.reduce_all(x.done), advance, start)
    return _best_hypotheses(search, length_penalty, n_best)


def _check_arguments(beam_size, length_penalty, n_best):
    if not 1 <= n_best <= beam_size:
        raise ValueError(
            "n_best must be between 1 and beam_size. "
            f"Received: n_best={n_best}, beam_size={beam_size}"
        )
    if length_penalty < 0:
        raise ValueError(
            "length_penalty must not be negative. "
            f"Received: length_penalty={length_penalty}"
        )


def _split_memory(state):
    memory = {name: state[name] for name in state if name == "memory"}
    return memory, {name: state[name] for name in state if name != "memory"}


def _start(state, max_lengths, beam_size):
    """All hypotheses of an item are alike, so that only one may count."""
    batch = tf.shape(max_lengths)[0]
    nothing = tf.zeros((batch, beam_size, 0), tf.int32)
    only_first = tf.one_hot(
        tf.zeros_like(max_lengths), beam_size, on_value=0.0, off_value=-math.inf
    )
    return _Search(
        tokens=tf.fill((batch * beam_size,), START),
        ids=nothing,
        log_probs=only_first,
        finished_ids=nothing,
        finished_scores=tf.fill((batch, beam_size), -math.inf),
        done=max_lengths <= 0,
        state=tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, beam_size, axis=0), state
        ),
    )


def _best_candidates(search, log_probs):
    """The 2 K best extensions: at most K of them end, so K live on.

    For them it is enough to look at the K + 1 best tokens of each hypothesis.
    """
    beam_size = search.ids.shape[1]
    per_hypothesis = min(beam_size + 1, log_probs.shape[-1])
    all_log_probs, all_tokens = top_k(log_probs, per_hypothesis)
    all_log_probs += tf.reshape(search.log_probs, (-1, 1))  # (B * K, K + 1)

    per_item = beam_size * per_hypothesis
    all_log_probs = tf.reshape(all_log_probs, (-1, per_item))
    all_tokens = tf.reshape(all_tokens, (-1, per_item))
    log_probs, places = tf.math.top_k(
        all_log_probs, min(2 * beam_size, per_item)
    )
    return _Candidates(
        parents=places // per_hypothesis,
        tokens=tf.gather(all_tokens, places, batch_dims=1),
        log_probs=log_probs,
    )


def _with_ended(search, candidates, length_penalty):
    """The pool of finished hypotheses after those of the K best that end."""
    beam_size = search.ids.shape[1]
    best = _Candidates(*(tensor[:, :beam_size] for tensor in candidates))
    ended = (best.tokens == END) & ~search.done[:, None]
    length = tf.shape(search.ids)[2] + 1
    scores = penalized_scores(best.log_probs, length, length_penalty)
    scores = tf.where(ended, scores, -math.inf)

    ids = tf.concat([_padded(search.finished_ids), _extended(search, best)], 1)
    scores = tf.concat([search.finished_scores, scores], axis=1)
    scores, places = tf.math.top_k(scores, beam_size)
    return tf.gather(ids, places, batch_dims=1), scores


def _with_living(search, candidates, state):
    """The search after the K best candidates that do not end.

    The hypotheses of an item that is done stay as they are.
    """
    beam_size = search.ids.shape[1]
    log_probs = tf.where(
        candidates.tokens == END, -math.inf, candidates.log_probs
    )
    log_probs, places = tf.math.top_k(log_probs, beam_size)
    done = search.done[:, None]
    parents = tf.gather(candidates.parents, places, batch_dims=1)
    parents = tf.where(done, tf.range(beam_size), parents)
    tokens = tf.gather(candidates.tokens, places, batch_dims=1)
    tokens = tf.where(done, PAD, tokens)
    log_probs = tf.where(done, search.log_probs, log_probs)
    best = _Candidates(parents, tokens, log_probs)

    first_rows = tf.range(tf.shape(parents)[0])[:, None] * beam_size
    rows = tf.reshape(first_rows + parents, (-1,))  # (B * K,)
    return search._replace(
        tokens=tf.reshape(tokens, (-1,)),
        ids=_extended(search, best),
        log_probs=log_probs,
        state=tf.nest.map_structure(
            lambda tensor: tf.gather(tensor, rows), state
        ),
    )


def _extended(search, candidates):
    ids = tf.gather(search.ids, candidates.parents, batch_dims=1)
    return tf.concat([ids, candidates.tokens[:, :, None]], axis=2)


def _padded(ids):
    return tf.pad(ids, [[0, 0], [0, 0], [0, 1]], constant_values=PAD)


def _is_done(search, max_lengths, length_penalty, n_best):
    """K have finished, or no live one can reach the n best, or the limit."""
    full = search.finished_scores[:, -1] > -math.inf
    # A sum of log-probabilities can only fall, and counts for most when it
    # is divided by the largest penalty, that of the length limit.
    highest = penalized_scores(
        search.log_probs[:, 0], max_lengths, length_penalty
    )
    hopeless = highest <= search.finished_scores[:, n_best - 1]
    at_limit = tf.shape(search.ids)[2] >= max_lengths
    return full | hopeless | at_limit


def _best_hypotheses(search, length_penalty, n_best):
    """Finished hypotheses, then live ones where there are too few."""
    live_scores = penalized_scores(
        search.log_probs, _lengths(search.ids), length_penalty
    )
    ids = tf.concat([search.finished_ids, search.ids], axis=1)
    scores = tf.concat([search.finished_scores, live_scores], axis=1)
    empty = tf.concat(
        [
            search.finished_scores == -math.inf,
            tf.zeros_like(live_scores, tf.bool),
        ],
        axis=1,
    )
    order = tf.argsort(tf.cast(empty, tf.int32), stable=True)[:, :n_best]
    scores = tf.gather(scores, order, batch_dims=1)
    ids = tf.gather(ids, order, batch_dims=1)
    ids = tf.where(scores[:, :, None] > -math.inf, ids, PAD)
    return Hypotheses(ids, scores, _lengths(ids))


def _lengths(ids):
    return tf.math.count_nonzero(ids != PAD, axis=-1, dtype=tf.int32)
