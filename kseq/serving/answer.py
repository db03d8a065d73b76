"""The answer of a predictor to one input."""

import math
from collections.abc import Mapping
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
        score: float, its score or its probability; -inf if there is no
            answer.
    """

    text: str
    score: float

    def to_json(self) -> dict[str, Any]:
        """What JSON has of it, which has no infinite numbers."""
        is_finite = math.isfinite(self.score)
        score = round(self.score, 6) if is_finite else None
        return {"text": self.text, "score": score}


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


def _is_another(hypothesis):
    return hypothesis.score != -math.inf and hypothesis != ("", 0.0)


def answer_of(
    row: Mapping[str, Any],
    n_best: int = 1,
    explanation: Any = None,
) -> Answer:
    """The answer to an input, from the outputs of a signature.

    Args:
        row: dict, name of an output -> its value for this input; `text` and
            `score`, or `texts` and `scores`, and `truncated`.
        n_best: int, how many hypotheses are wanted.
        explanation: `Attention` or None.
    """
    if "text" in row:
        pairs = [(row["text"], row["score"])]
    else:
        pairs = list(zip(row["texts"], row["scores"], strict=True))
    first, *others = [
        Hypothesis(text.decode("utf-8", "replace"), float(score))
        for text, score in pairs
    ]
    # There may be fewer answers; a blank line has one, a blank one.
    hypotheses = [first, *filter(_is_another, others)][:n_best]
    records = [hypothesis.to_json() for hypothesis in hypotheses]
    record = dict(records[0])
    if n_best > 1:
        record["hypotheses"] = records
    if explanation is not None:
        record["attention"] = explanation.to_json()
    return Answer(hypotheses, bool(row["truncated"]), record, explanation)
