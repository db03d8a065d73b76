"""Beam search."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kseq.control_tokens import END, PAD, START
from kseq.decoding.beam import (
    Beam,
    concat_extensions,
    equal_greedy,
    extended_ids,
    hypotheses_of_rows,
    mask_finished,
    with_rows,
)
from kseq.decoding.best_extensions import best_extensions
from kseq.decoding.greedy_search import GreedySearch
from kseq.decoding.hypotheses import (
    Hypotheses,
    coverage_scores,
    penalized_scores,
)
from kseq.decoding.loops import INTEGER
from kseq.decoding.phrases import Phrases, contains_all
from kseq.decoding.search_fields import (
    check_common_fields,
    common_fields,
    config_of,
)
from kseq.decoding.start_decoding import (
    are_row_wise,
    make_items,
    source_mask,
    start_decoding,
)
from kseq.decoding.stepwise_search import StepwiseSearch
from kseq.user_error import ArgumentError, check_integers, check_number


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """The best answers that a beam of hypotheses finds.

    At every step the K live hypotheses are extended by every token. Of the K
    best extensions, those that end are finished; the K best that do not end
    stay alive. At the length limit all K best are finished: an answer that
    the limit cuts competes by its score. An item is done at its length limit,
    or as soon as no live hypothesis can still enter the n best. The bound for a
    live hypothesis is its sum of log-probabilities, which can only fall,
    divided by the largest possible penalty: that of the length limit or, where
    likely lengths are given, that of the likely length (of the next token, if
    the hypothesis is longer already).

    A beam can prune the greedy hypothesis. The search therefore tracks it in
    one extra row per item, up to the length limit, and its answer competes with
    the finished answers: the best answer is never worse than that of
    `GreedySearch`. With `patience` there is no extra row and no such guarantee,
    and an item is also done when patience * K of its hypotheses have finished.

    A beam of one is greedy search, whatever the patience.

    With G groups the beam is searched in G parts of K / G hypotheses, one after
    the other. At every step the log-probability of a token is lowered by
    `diversity` for each hypothesis of the previous groups that has just got the
    same token. Each group has K / G answers of its own, with the scores of the
    model; there is no extra row. An answer of several groups is returned only
    once.

    With required phrases, an answer ends only after it contains all of them.
    The beam is shared between hypotheses with different numbers of phrase
    tokens, so some come closer at every step, however unlikely the phrases are.

    Args:
        beam_size: int, K, up to 10000.
        length_penalty: float, 0 to 10, see `penalized_scores`.
        penalty_offset: float, 5 for the penalty of Wu et al. 2016, 0 for
            length ** length_penalty.
        patience: float, 0.01 to 1000, or None; 1 is the fast rule of most
            toolkits ("first come, first served").
        ctc_weight: float, 0 to 1, weight of the CTC scores, for a model that
            was trained with CTC, see `kseq.models.LSTMSeq2Seq`.
        constraints: callables (log_probs (R, V), ids (R, T)) -> (R, V), where
            the rows of an item are consecutive.
        coverage_penalty: float, 0 to 100, b of Wu et al. 2016: a finished
            answer gains b * (the sum over the source positions of log min(c,
            1)), where c is the attention that a position got in total. For a
            model with attention to its source.
        num_groups: int, G, a divisor of `beam_size`.
        diversity: float, 0 to 1000, between groups; 0.2 to 0.8 in the paper.

    Call arguments:
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, a nest of tensors (B, ...) of any
            dtype and shape.
        max_lengths: (B,) int32, maximum number of tokens of each answer, END
            included.
        n_best: int, answers for each item, at most `beam_size`.
        prefix: (B, P) int32 or None, how each answer begins, PAD after each
            item's own prefix; or a `ForcedPrefix`.
        phrases: `kseq.decoding.Phrases` or None, what each answer must and
            must not contain. A required phrase needs a beam of two or more,
            and `max_lengths` beyond its tokens.
        likely_lengths: (B,) int, lengths that few answers exceed, or None. With
            them the search ends earlier.

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
        Kasai et al. 2022, arXiv:2204.05424 (patience); Wu et al. 2016,
        arXiv:1609.08144, equation 14 (coverage); Vijayakumar et al. 2016,
        arXiv:1610.02424 (groups); Post and Vilar 2018, arXiv:1804.06609
        (phrases).
    """

    beam_size: int = 4
    length_penalty: float = 1.0
    penalty_offset: float = 5.0
    patience: float | None = None
    ctc_weight: float = 0.0
    constraints: tuple[Callable, ...] | list[Callable] = ()
    coverage_penalty: float = 0.0
    num_groups: int = 1
    diversity: float = 0.5

    def __post_init__(self):
        check_integers(beam_size=self.beam_size, maximum=10_000)
        check_integers(num_groups=self.num_groups, maximum=self.beam_size)
        if self.beam_size % self.num_groups:
            raise ArgumentError(
                "beam_size must be a multiple of num_groups. Received: "
                f"beam_size={self.beam_size}, num_groups={self.num_groups}"
            )
        check_number("diversity", self.diversity, 0, 1000)
        check_number("coverage_penalty", self.coverage_penalty, 0, 100)
        if self.coverage_penalty and self.beam_size == 1:
            raise ArgumentError(
                "coverage_penalty needs a beam of two or more. "
                "Received: beam_size=1"
            )
        if self.patience is not None:
            check_number("patience", self.patience, 0.01, 1000)
        check_common_fields(self)

    @property
    def most_answers(self) -> int:
        """The largest `n_best`."""
        return self.beam_size

    def get_config(self) -> dict[str, Any]:
        config = config_of(self)
        # Earlier versions read a search without what they do not know.
        for name in ("coverage_penalty", "num_groups", "diversity"):
            if config[name] == getattr(BeamSearch, name):
                del config[name]
        return config

    def __call__(
        self,
        model: Any,
        inputs,
        max_lengths,
        *,
        n_best: int = 1,
        prefix=None,
        phrases: Phrases | None = None,
        likely_lengths=None,
    ) -> Hypotheses:
        if self.beam_size == 1 and phrases is not None:
            raise ArgumentError(
                "phrases need a beam of two or more. Received: beam_size=1"
            )
        items = make_items(
            *(inputs, max_lengths, prefix),
            phrases=phrases,
            likely_lengths=likely_lengths,
        )
        steps = self.steps(
            model,
            n_best=n_best,
            has_prefix=prefix is not None,
            phrases=phrases,
        )
        return steps.run(items)

    def steps(
        self,
        model: Any,
        *,
        n_best: int = 1,
        has_prefix: bool = False,
        phrases: Phrases | None = None,
    ) -> StepwiseSearch:
        """The search of a model, step by step."""
        check_integers(n_best=n_best, maximum=self.most_answers)
        if self.beam_size == 1:
            greedy = GreedySearch(**common_fields(self))
            return greedy.steps(model, has_prefix=has_prefix)

        width = self.beam_size + 1
        start, step = start_decoding(self, model, has_prefix, width, phrases)
        surfaces = phrases and phrases.surfaces

        def first(items):
            state, memory = start(items)
            return self._start(state, items), memory

        def advance(beam, memory):
            ids = tf.gather(beam.ids, hypotheses_of_rows(beam), batch_dims=1)
            ids = tf.reshape(ids, (tf.size(beam.tokens), tf.shape(ids)[2]))
            likeliest, state = step(beam.tokens, ids, beam.state, memory)
            best, alive, greedy = best_extensions(
                beam,
                *likeliest,
                size=self.beam_size,
                num_groups=self.num_groups,
                diversity=self.diversity,
                required=memory.phrases and memory.phrases.required,
                surfaces=surfaces,
            )
            coverage = self._coverage(beam, state, memory)
            extensions = concat_extensions(best, greedy)
            beam = self._finish(beam, extensions, memory, coverage, surfaces)
            alive = concat_extensions(alive, mask_finished(greedy))
            return self._keep(beam, alive, state, memory.items, n_best)

        def contenders(beam):
            ids, scores = self._best(beam, 1)
            return (
                tf.concat([ids, beam.ids], axis=1),
                tf.concat([scores, beam.log_probs], axis=1) > -math.inf,
            )

        def hypotheses(ids, scores):
            ids = tf.where(scores[:, :, None] > -math.inf, ids, PAD)
            lengths = tf.math.count_nonzero(ids != PAD, axis=2, dtype=tf.int32)
            return Hypotheses(tf.cast(ids, tf.int32), scores, lengths)

        return StepwiseSearch(
            start=first,
            advance=advance,
            is_done=lambda beam: beam.done,
            answers=lambda beam: self._best(beam, n_best),
            contenders=contenders,
            hypotheses=hypotheses,
            num_answers=n_best,
            is_splittable=are_row_wise(self.constraints),
        )

    @property
    def _has_greedy(self):
        """Whether the greedy hypothesis is tracked, too."""
        return self.patience is None and self.num_groups == 1

    def _best(self, beam, n_best):
        """The best of all groups, each answer once."""
        ids, scores = beam.finished_ids, beam.finished_scores
        if self.num_groups > 1:
            ids, scores = _sorted(ids, scores)
            if n_best > 1:
                ids, scores = _sorted(ids, _without_repeated(ids, scores))
        return ids[:, :n_best], scores[:, :n_best]

    def _start(self, state, items):
        """The hypotheses of an item are equal, and share a row.

        Only one of each group may count, and no greedy one where phrases are
        required. Where the limit is 0, the empty answer has finished.
        """
        max_lengths, size = items.max_lengths, self.beam_size
        batch, live = tf.shape(max_lengths)[0], size + self._has_greedy
        is_first = tf.range(live) % (size // self.num_groups) == 0
        empty = (max_lengths <= 0)[:, None] & (tf.range(size) == 0)
        log_probs = tf.where(is_first, 0.0, -math.inf)
        log_probs = tf.tile(log_probs[None], (batch, 1))
        if items.phrases is not None and self._has_greedy:
            is_free = tf.reduce_all(items.phrases[0] == PAD, axis=[1, 2, 3])
            is_beam = tf.range(live) < size
            log_probs = tf.where(
                is_free[:, None] | is_beam, log_probs, -math.inf
            )
        return Beam(
            tokens=tf.fill((batch,), tf.constant(START, INTEGER)),
            state=state,
            rows=tf.zeros((batch, live), INTEGER),
            hypotheses=tf.zeros((batch,), INTEGER),
            ids=tf.zeros((batch, live, 0), INTEGER),
            log_probs=log_probs,
            finished_ids=tf.zeros((batch, size, 0), INTEGER),
            finished_scores=tf.where(empty, 0.0, -math.inf),
            num_finished=tf.zeros_like(max_lengths),
            done=max_lengths <= 0,
        )

    def _coverage(self, beam, state, memory):
        """What the scores of each live hypothesis gain, (B, R) or None."""
        if not self.coverage_penalty:
            return None
        shape = tf.shape(hypotheses_of_rows(beam))
        mask = tf.repeat(source_mask(memory.model), shape[1], axis=0)
        gained = coverage_scores(state["coverage"], mask, self.coverage_penalty)
        gained = tf.reshape(gained, shape)
        return tf.gather(gained, beam.rows, batch_dims=1)

    def _finish(self, beam, extensions, memory, coverage, surfaces):
        """The beam with those extensions that end among the finished ones."""
        size = self.beam_size
        ids = extended_ids(beam, extensions)  # (B, R, T + 1)
        length = tf.shape(ids)[2]
        max_lengths = memory.items.max_lengths
        at_limit = (max_lengths <= tf.cast(length, INTEGER))[:, None]
        ended = (extensions.tokens == END) | at_limit
        if memory.phrases is not None:
            ended &= contains_all(memory.phrases.required, ids, surfaces)
        ended &= ~beam.done[:, None] & (extensions.log_probs > -math.inf)
        num_finished = tf.math.count_nonzero(
            ended[:, :size], axis=1, dtype=INTEGER
        )
        if self._has_greedy:  # the greedy answer, unless it is found
            found = equal_greedy(beam, extensions) & ended[:, :size]
            is_new = ended[:, size:] & ~tf.reduce_any(found, 1, keepdims=True)
            ended = tf.concat([ended[:, :size], is_new], axis=1)

        scores = self._scores(extensions.log_probs, length)
        if coverage is not None:
            scores += tf.gather(coverage, extensions.parents, batch_dims=1)
        scores = tf.where(ended, scores, -math.inf)
        pad = tf.fill(tf.shape(ids[:, :size, :1]), tf.constant(PAD, INTEGER))
        before = tf.concat([beam.finished_ids, pad], axis=2)
        parts = beam.finished_scores, scores, before, ids
        each = size // self.num_groups
        if self.num_groups > 1:
            parts = [
                tf.reshape(part, (-1, each, *tf.unstack(tf.shape(part))[2:]))
                for part in parts
            ]
        scores, places = tf.math.top_k(tf.concat(parts[:2], axis=1), each)
        ids = tf.gather(tf.concat(parts[2:], axis=1), places, batch_dims=1)
        if self.num_groups > 1:
            scores = tf.reshape(scores, (-1, size))
            ids = tf.reshape(ids, (-1, size, length))
        return beam._replace(
            finished_ids=ids,
            finished_scores=scores,
            num_finished=beam.num_finished + num_finished,
        )

    def _keep(self, beam, alive, state, items, n_best):
        """The beam of those extensions that may still be among the n best."""
        length = tf.cast(tf.shape(beam.ids)[2] + 1, INTEGER)
        done = items.max_lengths <= length
        log_probs = alive.log_probs
        longest = tf.maximum(items.likely_lengths, length + 1)[:, None]
        if self._has_greedy:
            is_beam = tf.range(tf.shape(log_probs)[1]) < self.beam_size
            longest = tf.where(is_beam, longest, items.max_lengths[:, None])
        worst = beam.finished_scores[:, n_best - 1, None]
        if self.num_groups > 1:  # of the own group
            each = self.beam_size // self.num_groups
            worst = tf.repeat(
                beam.finished_scores[:, each - 1 :: each], each, axis=1
            )
        highest = self._scores(log_probs, longest)
        if self._has_greedy:
            log_probs = tf.where(highest > worst, log_probs, -math.inf)
        else:  # those of one group count for the next one
            done |= tf.reduce_all(highest <= worst, axis=1)
        if self.patience is not None:
            enough = max(n_best, math.ceil(self.patience * self.beam_size))
            done |= beam.num_finished >= enough
        done |= beam.done | ~tf.reduce_any(log_probs > -math.inf, axis=1)

        alive = alive._replace(log_probs=log_probs)
        needs_row = (log_probs > -math.inf) & ~done[:, None]
        equal = None
        if self._has_greedy:
            equal = equal_greedy(beam, alive)
        beam = with_rows(beam, alive, state, needs_row, equal)
        return beam._replace(log_probs=log_probs, done=done)

    def _scores(self, log_probs, lengths):
        return penalized_scores(
            log_probs, lengths, self.length_penalty, self.penalty_offset
        )


def _sorted(ids, scores):
    """The answers of each item, the best first."""
    scores, places = tf.math.top_k(scores, tf.shape(scores)[1])
    return tf.gather(ids, places, batch_dims=1), scores


def _without_repeated(ids, scores):
    """The scores, -inf where an answer is the same as one before it."""
    is_equal = tf.reduce_all(ids[:, :, None] == ids[:, None], axis=3)
    places = tf.range(tf.shape(scores)[1])
    is_before = places < places[:, None]
    is_repeated = tf.reduce_any(is_equal & is_before, axis=2)
    return tf.where(is_repeated, -math.inf, scores)
