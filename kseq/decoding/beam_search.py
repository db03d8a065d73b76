"""Beam search."""

import dataclasses
import math
from typing import NamedTuple

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.greedy_search import GreedySearch
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.penalized_scores import penalized_scores
from kseq.decoding.search_fields import (
    check_common_fields,
    check_integer,
    check_number,
    config_of,
)
from kseq.decoding.start_decoding import start_decoding
from kseq.decoding.top_k import top_k
from kseq.decoding.while_loop import while_loop


class _Beam(NamedTuple):
    """R live hypotheses and K finished ones of each of B items.

    The first K live ones are the beam, the best first. The greedy hypothesis,
    if there is one, comes after them.
    """

    tokens: tf.Tensor  # (B * R,), the last ones of the live hypotheses
    ids: tf.Tensor  # (B, R, T), all so far
    log_probs: tf.Tensor  # (B, R), their sums, -inf if there is no hypothesis
    finished_ids: tf.Tensor  # (B, K, T)
    finished_scores: tf.Tensor  # (B, K), the best first, -inf if empty
    num_finished: tf.Tensor  # (B,), also those that were not kept
    done: tf.Tensor  # (B,)
    state: dict  # of tensors (B * R, ...)


class _Extensions(NamedTuple):
    """Live hypotheses with one more token each."""

    parents: tf.Tensor  # (B, C), which live hypothesis
    tokens: tf.Tensor  # (B, C), which token
    log_probs: tf.Tensor  # (B, C), of all tokens


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """The best answers that a beam of hypotheses finds.

    At every step the K live hypotheses are extended by every token. Of the K
    best extensions, those that end are finished; the K best that do not end
    stay alive. At the length limit all K best are finished: an answer that
    the limit cuts competes by its score. An item is done at its length limit,
    or as soon as no live hypothesis can still enter the n best: its sum of
    log-probabilities can only fall, and counts for most when divided by the
    largest penalty, that of the length limit.

    A beam can lose the hypothesis of greedy search. So the search follows it
    in one more row per item, and its answer competes with the finished ones:
    the best answer is never worse than that of `GreedySearch` or of the beam
    alone. With `patience` there is no such row and no such guarantee: an item
    is also done when patience * K of its hypotheses have finished.

    A beam of one is greedy search, whatever the patience.

    Args:
        beam_size: int, K, up to 10000.
        length_penalty: float, 0 to 10, see `penalized_scores`.
        penalty_offset: float, 5 for the penalty of Wu et al. 2016, 0 for
            length ** length_penalty.
        patience: float, 0.01 to 1000, or None; 1 is the fast rule of most
            toolkits ("first come, first served").
        ctc_weight: float, 0 to 1, share of the scores of CTC, for a model that
            was trained with it, see `kseq.models.LSTMSeq2Seq`.
        constraints: callables (log_probs (R, V), ids (R, T)) -> (R, V), where
            the rows of an item are consecutive.

    Call arguments:
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, passed on unread.
        max_lengths: (B,) int32, most tokens of each answer, END included.
        n_best: int, answers for each item, at most `beam_size`.
        prefix: (B, P) int32 or None, how each answer begins, PAD after each
            item's own prefix; see `ForcedPrefix`.

    Returns:
        Hypotheses, N = n_best.

    Raises:
        ValueError: if a field or `n_best` is out of range.

    Example:
        >>> model = kseq.models.LSTMSeq2Seq(
        ...     source_vocab_size=9, target_vocab_size=9,
        ...     embedding_dim=4, units=4, attention=None,
        ... )
        >>> inputs = {"source_ids": tf.constant([[4, 5, 3], [6, 3, 0]])}
        >>> search = BeamSearch(beam_size=3)
        >>> best = search(model, inputs, tf.constant([5, 5]), n_best=2)
        >>> best.scores.shape
        TensorShape([2, 2])

    Reference:
        Kasai et al. 2022, arXiv:2204.05424 (patience).
    """

    beam_size: int = 4
    length_penalty: float = 1.0
    penalty_offset: float = 5.0
    patience: float | None = None
    ctc_weight: float = 0.0
    constraints: tuple = ()

    def __post_init__(self):
        check_integer("beam_size", self.beam_size, 1, 10_000)
        if self.patience is not None:
            check_number("patience", self.patience, 0.01, 1000)
        check_common_fields(self)

    @property
    def most_answers(self):
        """The largest `n_best`."""
        return self.beam_size

    def get_config(self):
        return config_of(self)

    def __call__(self, model, inputs, max_lengths, *, n_best=1, prefix=None):
        check_integer("n_best", n_best, 1, self.most_answers)
        if self.beam_size == 1:
            names = [field.name for field in dataclasses.fields(GreedySearch)]
            greedy = GreedySearch(*(getattr(self, name) for name in names))
            return greedy(model, inputs, max_lengths, prefix=prefix)

        max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
        step, state = start_decoding(
            self, model, inputs, max_lengths, prefix, self._rows
        )

        def advance(beam):
            num_rows, length = tf.size(beam.tokens), tf.shape(beam.ids)[2]
            ids = tf.reshape(beam.ids, (num_rows, length))
            log_probs, state = step(beam.tokens, ids, beam.state)
            best, greedy = self._extend(beam, log_probs)
            beam = self._finish(beam, best, greedy, max_lengths)
            beam = self._keep_alive(beam, best, greedy, state)
            done = self._is_done(beam, max_lengths, n_best)
            return beam._replace(done=beam.done | done)

        start = self._start(state, max_lengths)
        beam = while_loop(lambda x: ~tf.reduce_all(x.done), advance, start)
        scores = beam.finished_scores[:, :n_best]
        ids = beam.finished_ids[:, :n_best]
        ids = tf.where(scores[:, :, None] > -math.inf, ids, PAD)
        lengths = tf.math.count_nonzero(ids != PAD, axis=2, dtype=tf.int32)
        return Hypotheses(ids, scores, lengths)

    @property
    def _rows(self):
        """Live hypotheses of an item, the greedy one included."""
        return self.beam_size + (self.patience is None)

    def _start(self, state, max_lengths):
        """The K hypotheses of an item are equal, so only one may count.

        Where the limit is 0, the empty answer has finished.
        """
        batch = tf.shape(max_lengths)[0]
        is_first = tf.range(self._rows) % self.beam_size == 0
        empty = (max_lengths <= 0)[:, None] & is_first[: self.beam_size]
        log_probs = tf.where(is_first, 0.0, -math.inf)
        return _Beam(
            tokens=tf.fill((batch * self._rows,), START),
            ids=tf.zeros((batch, self._rows, 0), tf.int32),
            log_probs=tf.tile(log_probs[None], (batch, 1)),
            finished_ids=tf.zeros((batch, self.beam_size, 0), tf.int32),
            finished_scores=tf.where(empty, 0.0, -math.inf),
            num_finished=tf.zeros_like(max_lengths),
            done=max_lengths <= 0,
            state=state,
        )

    def _extend(self, beam, log_probs):
        """The 2 K best extensions of the beam, and that of greedy search.

        At most K of 2 K end, so K stay alive. For them it is enough to look
        at the K + 1 best tokens of each hypothesis.
        """
        size = self.beam_size
        width = min(size + 1, log_probs.shape[-1])
        log_probs, tokens = top_k(log_probs, width)
        log_probs += tf.reshape(beam.log_probs, (-1, 1))  # (B * R, width)
        log_probs = tf.reshape(log_probs, (-1, self._rows, width))
        tokens = tf.reshape(tokens, (-1, self._rows, width))

        flat = (-1, size * width)
        of_beam, places = tf.math.top_k(
            tf.reshape(log_probs[:, :size], flat), min(2 * size, flat[1])
        )
        all_tokens = tf.reshape(tokens[:, :size], flat)
        best = _Extensions(
            parents=places // width,
            tokens=tf.gather(all_tokens, places, batch_dims=1),
            log_probs=of_beam,
        )
        of_greedy = tokens[:, size:, 0]  # (B, R - K)
        greedy = _Extensions(
            parents=tf.fill(tf.shape(of_greedy), size),
            tokens=of_greedy,
            log_probs=log_probs[:, size:, 0],
        )
        return best, greedy

    def _finish(self, beam, best, greedy, max_lengths):
        """The beam with those extensions that end among the finished ones."""
        size = self.beam_size
        best = _Extensions(*(tensor[:, :size] for tensor in best))
        extensions = _joined(best, greedy)
        ids = _extended_ids(beam, extensions)  # (B, R, T + 1)
        length = tf.shape(ids)[2]
        at_limit = (length >= max_lengths)[:, None]
        ended = (extensions.tokens == END) | at_limit
        ended &= ~beam.done[:, None] & (extensions.log_probs > -math.inf)
        num_finished = tf.math.count_nonzero(
            ended[:, :size], axis=1, dtype=tf.int32
        )
        if self.patience is None:  # the greedy answer, unless it is found
            found = tf.reduce_all(ids[:, :size] == ids[:, size:], axis=-1)
            found = tf.reduce_any(found & ended[:, :size], axis=1)
            is_new = ended[:, size:] & ~found[:, None]
            ended = tf.concat([ended[:, :size], is_new], axis=1)

        scores = self._scores(extensions.log_probs, length)
        scores = tf.where(ended, scores, -math.inf)
        padding = [[0, 0], [0, 0], [0, 1]]
        before = tf.pad(beam.finished_ids, padding, constant_values=PAD)
        scores = tf.concat([beam.finished_scores, scores], axis=1)
        scores, places = tf.math.top_k(scores, size)
        ids = tf.concat([before, ids], axis=1)
        return beam._replace(
            finished_ids=tf.gather(ids, places, batch_dims=1),
            finished_scores=scores,
            num_finished=beam.num_finished + num_finished,
        )

    def _keep_alive(self, beam, best, greedy, state):
        """The beam with the K best extensions that do not end."""
        best, greedy = _without_ended(best), _without_ended(greedy)
        log_probs, places = tf.math.top_k(best.log_probs, self.beam_size)
        alive = _Extensions(
            parents=tf.gather(best.parents, places, batch_dims=1),
            tokens=tf.gather(best.tokens, places, batch_dims=1),
            log_probs=log_probs,
        )
        alive = _joined(alive, greedy)
        first_rows = tf.range(tf.shape(places)[0])[:, None] * self._rows
        rows = tf.reshape(first_rows + alive.parents, (-1,))  # (B * R,)
        return beam._replace(
            tokens=tf.reshape(alive.tokens, (-1,)),
            ids=_extended_ids(beam, alive),
            log_probs=alive.log_probs,
            state=tf.nest.map_structure(
                lambda tensor: tf.gather(tensor, rows), state
            ),
        )

    def _is_done(self, beam, max_lengths, n_best):
        likeliest = tf.reduce_max(beam.log_probs, axis=1)
        highest = self._scores(likeliest, max_lengths)
        hopeless = highest <= beam.finished_scores[:, n_best - 1]
        done = hopeless | (tf.shape(beam.ids)[2] >= max_lengths)
        if self.patience is None:
            return done
        enough = max(n_best, math.ceil(self.patience * self.beam_size))
        return done | (beam.num_finished >= enough)

    def _scores(self, log_probs, lengths):
        return penalized_scores(
            log_probs, lengths, self.length_penalty, self.penalty_offset
        )


def _without_ended(extensions):
    has_ended = extensions.tokens == END
    log_probs = tf.where(has_ended, -math.inf, extensions.log_probs)
    return extensions._replace(log_probs=log_probs)


def _joined(first, second):
    pairs = zip(first, second, strict=True)
    return _Extensions(*(tf.concat(pair, axis=1) for pair in pairs))


def _extended_ids(beam, extensions):
    ids = tf.gather(beam.ids, extensions.parents, batch_dims=1)
    return tf.concat([ids, extensions.tokens[:, :, None]], axis=2)
