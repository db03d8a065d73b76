"""Beam search."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.beam import (
    Beam,
    Extensions,
    concat_extensions,
    equal_greedy,
    extended_ids,
    hypotheses_of_rows,
    mask_finished,
    with_rows,
)
from kseq.decoding.greedy_search import GreedySearch
from kseq.decoding.hypotheses import Hypotheses, penalized_scores
from kseq.decoding.loops import (
    INTEGER,
    decode_until_finished,
    map_micro_batches,
)
from kseq.decoding.search_fields import (
    check_common_fields,
    check_number,
    config_of,
)
from kseq.decoding.start_decoding import (
    are_row_wise,
    make_items,
    start_decoding,
)
from kseq.user_error import check_integers


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

    A beam can prune the greedy hypothesis. The search therefore tracks it in
    one extra row per item, and its answer competes with the finished ones: the
    best answer is never worse than that of `GreedySearch` or of the beam alone.
    With `patience` there is no such row and no such guarantee: an item is also
    done when patience * K of its hypotheses have finished.

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
        inputs: what `model.encode` takes, a nest of tensors (B, ...) of any
            dtype and shape.
        max_lengths: (B,) int32, maximum number of tokens of each answer, END
            included.
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
    constraints: tuple[Callable, ...] | list[Callable] = ()

    def __post_init__(self):
        check_integers(beam_size=self.beam_size, maximum=10_000)
        if self.patience is not None:
            check_number("patience", self.patience, 0.01, 1000)
        check_common_fields(self)

    @property
    def most_answers(self) -> int:
        """The largest `n_best`."""
        return self.beam_size

    def get_config(self) -> dict[str, Any]:
        return config_of(self)

    def __call__(
        self, model: Any, inputs, max_lengths, *, n_best: int = 1, prefix=None
    ) -> Hypotheses:
        check_integers(n_best=n_best, maximum=self.most_answers)
        if self.beam_size == 1:
            names = [field.name for field in dataclasses.fields(GreedySearch)]
            greedy = GreedySearch(*(getattr(self, name) for name in names))
            return greedy(model, inputs, max_lengths, prefix=prefix)

        items = make_items(inputs, max_lengths, prefix)
        width = self.beam_size + 1
        start, step = start_decoding(self, model, prefix is not None, width)

        def advance(beam, memory):
            ids = tf.gather(beam.ids, hypotheses_of_rows(beam), batch_dims=1)
            ids = tf.reshape(ids, (tf.size(beam.tokens), tf.shape(ids)[2]))
            likeliest, state = step(beam.tokens, ids, beam.state, memory)
            best, greedy = self._extend(beam, *likeliest)
            max_lengths = memory.items.max_lengths
            beam = self._finish(beam, best, greedy, max_lengths)
            alive = self._alive(best, greedy)
            return self._keep(beam, alive, state, max_lengths, n_best)

        is_splittable = are_row_wise(self.constraints)

        def search(items):
            state, memory = start(items)
            return decode_until_finished(
                advance,
                self._start(state, items.max_lengths),
                memory,
                is_done=lambda beam: beam.done,
                answers=lambda beam: (
                    beam.finished_ids[:, :n_best],
                    beam.finished_scores[:, :n_best],
                ),
                is_splittable=is_splittable,
            )

        ids, scores = map_micro_batches(search, items, n_best, is_splittable)
        ids = tf.where(scores[:, :, None] > -math.inf, ids, PAD)
        lengths = tf.math.count_nonzero(ids != PAD, axis=2, dtype=tf.int32)
        return Hypotheses(tf.cast(ids, tf.int32), scores, lengths)

    @property
    def _live(self):
        """Live hypotheses of an item, the greedy one included."""
        return self.beam_size + (self.patience is None)

    def _start(self, state, max_lengths):
        """The hypotheses of an item are equal, and share a row.

        Only one of the beam may count. Where the limit is 0, the empty answer
        has finished.
        """
        batch = tf.shape(max_lengths)[0]
        is_first = tf.range(self._live) % self.beam_size == 0
        empty = (max_lengths <= 0)[:, None] & is_first[: self.beam_size]
        log_probs = tf.where(is_first, 0.0, -math.inf)
        return Beam(
            tokens=tf.fill((batch,), tf.constant(START, INTEGER)),
            state=state,
            rows=tf.zeros((batch, self._live), INTEGER),
            hypotheses=tf.zeros((batch,), INTEGER),
            ids=tf.zeros((batch, self._live, 0), INTEGER),
            log_probs=tf.tile(log_probs[None], (batch, 1)),
            finished_ids=tf.zeros((batch, self.beam_size, 0), INTEGER),
            finished_scores=tf.where(empty, 0.0, -math.inf),
            num_finished=tf.zeros_like(max_lengths),
            done=max_lengths <= 0,
        )

    def _extend(self, beam, log_probs, tokens):
        """The 2 K best extensions of the beam, and that of greedy search.

        At most K of 2 K end, so K stay alive. For them it is enough to look at
        the K + 1 most likely tokens of each row, (B * W, K + 1).
        """
        size, width = self.beam_size, tokens.shape[-1]
        shape = (*tf.unstack(tf.shape(hypotheses_of_rows(beam))), width)
        log_probs, tokens = (
            tf.gather(tf.reshape(tensor, shape), beam.rows, batch_dims=1)
            for tensor in (log_probs, tokens)
        )  # (B, R, width)
        log_probs += beam.log_probs[:, :, None]

        flat = (-1, size * width)
        of_beam, places = tf.math.top_k(
            tf.reshape(log_probs[:, :size], flat), min(2 * size, flat[1])
        )
        places = tf.cast(places, INTEGER)
        all_tokens = tf.reshape(tokens[:, :size], flat)
        best = Extensions(
            parents=places // width,
            tokens=tf.gather(all_tokens, places, batch_dims=1),
            log_probs=of_beam,
        )
        of_greedy = tokens[:, size:, 0]  # (B, R - K)
        greedy = Extensions(
            parents=tf.fill(tf.shape(of_greedy), tf.constant(size, INTEGER)),
            tokens=of_greedy,
            log_probs=log_probs[:, size:, 0],
        )
        return best, greedy

    def _finish(self, beam, best, greedy, max_lengths):
        """The beam with those extensions that end among the finished ones."""
        size = self.beam_size
        best = Extensions(*(tensor[:, :size] for tensor in best))
        extensions = concat_extensions(best, greedy)
        ids = extended_ids(beam, extensions)  # (B, R, T + 1)
        length = tf.shape(ids)[2]
        at_limit = (max_lengths <= tf.cast(length, INTEGER))[:, None]
        ended = (extensions.tokens == END) | at_limit
        ended &= ~beam.done[:, None] & (extensions.log_probs > -math.inf)
        num_finished = tf.math.count_nonzero(
            ended[:, :size], axis=1, dtype=INTEGER
        )
        if self.patience is None:  # the greedy answer, unless it is found
            found = equal_greedy(beam, extensions) & ended[:, :size]
            is_new = ended[:, size:] & ~tf.reduce_any(found, 1, keepdims=True)
            ended = tf.concat([ended[:, :size], is_new], axis=1)

        scores = self._scores(extensions.log_probs, length)
        scores = tf.where(ended, scores, -math.inf)
        pad = tf.fill(tf.shape(ids[:, :size, :1]), tf.constant(PAD, INTEGER))
        before = tf.concat([beam.finished_ids, pad], axis=2)
        scores = tf.concat([beam.finished_scores, scores], axis=1)
        scores, places = tf.math.top_k(scores, size)
        ids = tf.concat([before, ids], axis=1)
        return beam._replace(
            finished_ids=tf.gather(ids, places, batch_dims=1),
            finished_scores=scores,
            num_finished=beam.num_finished + num_finished,
        )

    def _alive(self, best, greedy):
        """The K best extensions that do not end, and the greedy one."""
        best, greedy = mask_finished(best), mask_finished(greedy)
        log_probs, places = tf.math.top_k(best.log_probs, self.beam_size)
        alive = Extensions(
            parents=tf.gather(best.parents, places, batch_dims=1),
            tokens=tf.gather(best.tokens, places, batch_dims=1),
            log_probs=log_probs,
        )
        return concat_extensions(alive, greedy)

    def _keep(self, beam, alive, state, max_lengths, n_best):
        """The beam of those extensions that may still be among the n best."""
        done = max_lengths <= tf.cast(tf.shape(beam.ids)[2] + 1, INTEGER)
        log_probs = alive.log_probs
        if self.patience is None:
            highest = self._scores(log_probs, max_lengths[:, None])
            may_win = highest > beam.finished_scores[:, n_best - 1, None]
            log_probs = tf.where(may_win, log_probs, -math.inf)
        else:
            enough = max(n_best, math.ceil(self.patience * self.beam_size))
            done |= beam.num_finished >= enough
            best = self._scores(tf.reduce_max(log_probs, 1), max_lengths)
            done |= best <= beam.finished_scores[:, n_best - 1]
        done |= beam.done | ~tf.reduce_any(log_probs > -math.inf, axis=1)

        alive = alive._replace(log_probs=log_probs)
        needs_row = (log_probs > -math.inf) & ~done[:, None]
        equal = None
        if self.patience is None:
            equal = equal_greedy(beam, alive)
        beam = with_rows(beam, alive, state, needs_row, equal)
        return beam._replace(log_probs=log_probs, done=done)

    def _scores(self, log_probs, lengths):
        return penalized_scores(
            log_probs, lengths, self.length_penalty, self.penalty_offset
        )
