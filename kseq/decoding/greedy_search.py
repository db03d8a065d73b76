"""Greedy search."""

import dataclasses
from collections.abc import Callable
from typing import Any

from kseq.decoding.generate import generate
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.search_fields import check_common_fields, config_of
from kseq.decoding.start_decoding import make_items
from kseq.decoding.stepwise_search import StepwiseSearch
from kseq.user_error import check_integers


@dataclasses.dataclass(frozen=True)
class GreedySearch:
    """The most likely token at every step.

    Args:
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
        n_best: int, 1.
        prefix: (B, P) int32 or None, how each answer begins, PAD after each
            item's own prefix; or a `ForcedPrefix`.

    Returns:
        Hypotheses, N = 1.

    Raises:
        ValueError: if a field or `n_best` is out of range.

    Example:
        >>> model = kseq.models.LSTMSeq2Seq(
        ...     source_vocab_size=9, target_vocab_size=9,
        ...     embedding_dim=4, units=4, attention=None,
        ... )
        >>> inputs = {"source_ids": tf.constant([[4, 5, 3], [6, 3, 0]])}
        >>> best = GreedySearch()(model, inputs, tf.constant([5, 5]))
        >>> best.scores.shape
        TensorShape([2, 1])
    """

    length_penalty: float = 1.0
    penalty_offset: float = 5.0
    ctc_weight: float = 0.0
    constraints: tuple[Callable, ...] | list[Callable] = ()

    def __post_init__(self):
        check_common_fields(self)

    @property
    def most_answers(self) -> int:
        """The largest `n_best`."""
        return 1

    def __call__(
        self, model: Any, inputs, max_lengths, *, n_best: int = 1, prefix=None
    ) -> Hypotheses:
        items = make_items(inputs, max_lengths, prefix)
        steps = self.steps(model, n_best=n_best, has_prefix=prefix is not None)
        return steps.run(items)

    def steps(
        self, model: Any, *, n_best: int = 1, has_prefix: bool = False
    ) -> StepwiseSearch:
        """The search of a model, step by step."""
        check_integers(n_best=n_best, maximum=self.most_answers)
        return generate(self, model, None, has_prefix)

    def get_config(self) -> dict[str, Any]:
        return config_of(self)
