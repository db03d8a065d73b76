"""Sampling."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from kseq.decoding.generate import generate
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.loops import INTEGER
from kseq.decoding.search_fields import (
    check_common_fields,
    common_fields,
    config_of,
)
from kseq.decoding.start_decoding import make_items
from kseq.decoding.stepwise_search import StepwiseSearch
from kseq.user_error import check_integers, check_number

if TYPE_CHECKING:
    from kseq.decoding import Search


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Tokens drawn at random, each with the probability of the model.

    Scores use the model's own probabilities at every temperature.

    The draws depend only on the seed, the sample and the position of the
    token: the same seed gives the same answers, and an item has the same
    answers alone, in any batch and in any order (up to rounding in the
    model). So equal sources get equal answers; use a different seed or
    `num_samples` for different answers.

    Args:
        temperature: float, 0.001 to 1000; the logits are divided by it.
        top_k: int, sample from the k most likely tokens, and those that are
            as likely as the last of them; 0 for all.
        top_p: float, up to 1; sample from the smallest set of most likely
            tokens whose total probability reaches this value, and those that
            are as likely as the last of them.
        seed: int, 0 or more.
        num_samples: int, independent answers drawn for each item, returned
            with the best first; they need not differ.
        length_penalty: float, 0 to 10, see `penalized_scores`.
        penalty_offset: float, 5 for the penalty of Wu et al. 2016, 0 for
            length ** length_penalty.
        ctc_weight: float, 0 to 1, weight of the CTC scores, for a model that
            was trained with CTC, see `kseq.models.LSTMSeq2Seq`.
        constraints: callables (log_probs (R, V), ids (R, T)) -> (R, V).

    Call arguments:
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, a nest of tensors (B, ...) of any
            dtype and shape.
        max_lengths: (B,) int32, maximum number of tokens of each answer, END
            included.
        n_best: int, the best ones of the samples, at most `num_samples`.
        prefix: (B, P) int32 or None, how each answer begins, PAD after each
            item's own prefix; or a `ForcedPrefix`.
        params: `SamplingParams` or None, the temperature, top p and seed of
            each item, in place of those of the search.

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
        >>> search = Sampling(temperature=0.8, seed=7)
        >>> first = search(model, inputs, tf.constant([5, 5]))
        >>> again = search(model, inputs, tf.constant([5, 5]))
        >>> bool(tf.reduce_all(first.ids == again.ids))
        True

    Reference:
        Holtzman et al. 2020, arXiv:1904.09751, section 3.1 (top p).
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    num_samples: int = 1
    length_penalty: float = 1.0
    penalty_offset: float = 5.0
    ctc_weight: float = 0.0
    constraints: tuple[Callable, ...] | list[Callable] = ()

    def __post_init__(self):
        check_number("temperature", self.temperature, 0.001, 1000)
        check_integers(top_k=self.top_k, minimum=0)
        check_number("top_p", self.top_p, 1e-6, 1)
        check_integers(seed=self.seed, minimum=0, maximum=2**63 - 1)
        check_integers(num_samples=self.num_samples, maximum=10_000)
        check_common_fields(self)

    @property
    def most_answers(self) -> int:
        """The largest `n_best`."""
        return self.num_samples

    def __call__(
        self,
        model: Any,
        inputs,
        max_lengths,
        *,
        n_best: int = 1,
        prefix=None,
        params: "SamplingParams | None" = None,
    ) -> Hypotheses:
        items = make_items(inputs, max_lengths, prefix, params)
        steps = self.steps(model, n_best=n_best, has_prefix=prefix is not None)
        return steps.run(items)

    def steps(
        self, model: Any, *, n_best: int = 1, has_prefix: bool = False
    ) -> StepwiseSearch:
        """The search of a model, step by step."""
        check_integers(n_best=n_best, maximum=self.most_answers)
        return generate(
            self, model, self._draw, has_prefix, self.num_samples, n_best
        )

    def _draw(self, log_probs, position, params):
        """Adds noise by the seed of an item: the largest sum is the draw."""
        samples = self.num_samples
        temperature, top_p = self.temperature, self.top_p
        if params is not None:
            temperature, top_p = (
                tf.repeat(values, samples)[:, None] for values in params[:2]
            )
        log_probs = log_probs / temperature
        if self.top_k:
            log_probs = _likeliest_tokens(log_probs, self.top_k)
        if params is not None or top_p < 1:
            log_probs = _nucleus(log_probs, top_p)
        rows, size = tf.unstack(tf.shape(log_probs))

        def uniform(seed):
            # As int32, both stay on the CPU, where TensorFlow wants them.
            is_small = isinstance(seed, int) and seed < 2**31
            kind = tf.int32 if is_small else tf.int64
            return tf.random.stateless_uniform(
                (samples, size),
                seed=[tf.cast(seed, kind), tf.cast(position, kind)],
                minval=1e-30,
            )

        if params is None:
            drawn = tf.tile(uniform(self.seed), (rows // samples, 1))
        else:
            drawn = tf.map_fn(
                uniform, params.seed, fn_output_signature=tf.float32
            )
            drawn = tf.reshape(drawn, (rows, size))
        noise = -tf.math.log(-tf.math.log(drawn))  # of Gumbel's distribution
        return tf.argmax(log_probs + noise, axis=-1, output_type=INTEGER)

    def get_config(self) -> dict[str, Any]:
        return config_of(self)


def _likeliest_tokens(log_probs, top_k):
    top_k = min(top_k, log_probs.shape[-1])
    least = tf.math.top_k(log_probs, top_k).values[:, -1:]
    return tf.where(log_probs < least, -math.inf, log_probs)


def _nucleus(log_probs, top_p):
    falling = tf.sort(log_probs, direction="DESCENDING")
    before = tf.cumsum(tf.nn.softmax(falling), axis=-1, exclusive=True)
    # A sum of all may be rounded to 1 before the last.
    inside = (before < top_p) | (top_p >= 1)
    inside = tf.where(inside, falling, math.inf)
    least = tf.reduce_min(inside, axis=-1, keepdims=True)
    return tf.where(log_probs < least, -math.inf, log_probs)


class SamplingParams(NamedTuple):
    """Temperature, top p and seed of each item, in place of `Sampling`'s.

    Args:
        temperature: (B,) float32.
        top_p: (B,) float32.
        seed: (B,) int64.
    """

    temperature: tf.Tensor
    top_p: tf.Tensor
    seed: tf.Tensor

    @staticmethod
    def input_signature() -> dict[str, tf.TensorSpec]:
        """The three as inputs of a signature, a dict of `tf.TensorSpec`."""
        kinds = {
            "temperature": tf.float32,
            "top_p": tf.float32,
            "seed": tf.int64,
        }
        return {
            name: tf.TensorSpec((None,), kind, name)
            for name, kind in kinds.items()
        }

    @classmethod
    def clipped(cls, temperature, top_p, seed) -> "SamplingParams":
        """The nearest values that `Sampling` admits.

        A request shares its batch with others, so it cannot be refused within
        a graph. What is not a number is 1.
        """
        return cls(
            _within(temperature, 0.001, 1000.0), _within(top_p, 1e-6, 1.0), seed
        )


def to_sampling(search: "Search") -> Sampling:
    """A `Sampling` with what a different search has in common with it."""
    top_k = getattr(search, "top_k", 0)
    return Sampling(top_k=top_k, **common_fields(search))


def _within(values, least, most):
    values = tf.where(tf.math.is_nan(values), 1.0, values)
    return tf.clip_by_value(values, least, most)
