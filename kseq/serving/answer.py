"""The answer of a predictor to one input."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kseq.serving.attention import Attention
    from kseq.serving.explained_document import ExplainedDocument
    from kseq.serving.memory_use import MemoryUse


class Hypothesis(NamedTuple):
    """One of the answers to an input.

    Args:
        text: str, a text or a label.
        score: float, its score or its probability.
    """

    text: str
    score: float


class Answer(NamedTuple):
    """The answer of a predictor to one input.

    Args:
        hypotheses: list of `Hypothesis`, the best first.
        truncated: bool, whether the input was cut.
        record: dict, the answer as JSON has it.
        explanation: `Attention`, `ExplainedDocument` or `MemoryUse`, if
            asked for.
    """

    hypotheses: list[Hypothesis]
    truncated: bool
    record: dict[str, Any]
    explanation: "Attention | ExplainedDocument | MemoryUse | None" = None


def rounded(values: np.ndarray) -> list[Any]:
    """An array as JSON has it: nested lists of numbers with six digits."""
    return np.round(values.astype(float), 6).tolist()
