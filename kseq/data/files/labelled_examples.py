"""Inputs of a model with their labels."""

from typing import Any, NamedTuple


class LabelledExamples(NamedTuple):
    """Inputs of a model with their labels, as they are evaluated.

    Args:
        names: list of str, the text that is shown of each.
        inputs: list of inputs of a served signature.
        labels: list of str.
        evidence: of built-in examples: what decides the label of each.
    """

    names: list[str]
    inputs: list[Any]
    labels: list[str]
    evidence: list[Any] | None = None
