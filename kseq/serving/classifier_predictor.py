"""Labels from Python lists: a classifier without tensors."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from kseq.serving.answer import Answer, Hypothesis
from kseq.serving.attention import (
    Attention,
    page_of_attentions,
    with_pictures,
)
from kseq.serving.explained_document import ExplainedDocument
from kseq.serving.head_attention import head_attention
from kseq.serving.predict_batches import Progress, Signatures, predict_batches
from kseq.sources import source_named
from kseq.user_error import UserError, check_integers

if TYPE_CHECKING:  # an export needs no model code
    from kseq.serving.classifier import Classifier


class ClassifierPredictor:
    """Labels lists of documents, recordings or other inputs.

    `kseq.load` returns one for a run or an export that answers with a label.

    Args:
        signatures: dict of functions, see `kseq.serving.Classifier`.
        served: the `Classifier`, where there is one: not for an export.
        batch_size: int or None, documents read at once, see `predict_batches`.
        source: str, what the signatures call an input, see
            `GeneratorPredictor`.

    Attributes:
        model: the `keras.Model` of a run; None for an export.

    Raises:
        UserError: for a method whose signature the export does not have.

    Example:
        >>> classifier = kseq.load("saved_models/reports")  # doctest: +SKIP
        >>> classifier(["The baker saw smoke."])  # doctest: +SKIP
        ['fire']
    """

    def __init__(
        self,
        signatures: Signatures,
        served: "Classifier | None" = None,
        batch_size: int | None = None,
        source: str = "text",
    ):
        self.signatures = signatures
        self.source = source
        self.served = served
        self.batch_size = batch_size
        self.model = served.model if served else None

    def __call__(self, inputs: list[Any]) -> list[str]:
        """The label of each input, a list of str."""
        answers = self.answers(inputs)
        return [answer.hypotheses[0].text for answer in answers]

    @property
    def labels(self) -> list[str]:
        """All labels, a list of str in the order of the model's classes."""
        if self.served:
            return list(self.served.labels)
        return list(self.probabilities([self._blank()])[0])

    def probabilities(
        self,
        inputs: list[Any],
        progress: Progress | None = None,
    ) -> list[dict[str, float]]:
        """All labels' probabilities for each input, a list of dicts."""
        rows = self._rows("serving_default", inputs, progress)
        return [_probabilities(row) for row in rows]

    def explain(
        self, inputs: list[Any]
    ) -> list[ExplainedDocument] | list[Attention]:
        """What decided each label.

        Returns:
            A list of `ExplainedDocument`; of `Attention` of the label for
            other inputs than documents.
        """
        rows = self._rows("explain", inputs)
        if rows and "attention" in rows[0]:
            attentions = map(Attention.of_row, rows)
            return with_pictures(attentions, self.source, inputs)
        return [ExplainedDocument.of_row(row) for row in rows]

    def head_attention(
        self,
        inputs: list[Any],
        part: str = "encoder",
        block: int = -1,
        head: int = 0,
    ) -> list[Attention]:
        """See `GeneratorPredictor.head_attention`; there is an encoder only."""
        return head_attention(self.served, inputs, part, block, head)

    def page(
        self, explained: Iterable[ExplainedDocument] | Iterable[Attention]
    ) -> str:
        """HTML of what `explain` returned, see `kseq.pictures`."""
        from kseq.pictures import document_page  # predict needs none

        items: Iterator[Any] = iter(explained)
        first = list(itertools.islice(items, 1))
        items = itertools.chain(first, items)
        if first and isinstance(first[0], Attention):
            return page_of_attentions(items, self.source)
        return document_page(items)

    def scores(self, inputs: list[Any], targets: list[str]) -> NoReturn:
        """Refused: it is for generators."""
        raise UserError(
            "score is for models that generate text; for labels use predict "
            "--scores."
        )

    def answers(
        self,
        inputs: list[Any],
        *,
        n_best: int = 1,
        prefixes: list[str] | list[bytes] | None = None,
        attention: bool = False,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """The most likely labels with all that is known of them.

        Args:
            inputs: list of str or bytes.
            n_best: int, labels; all of them if there are fewer.
            prefixes: must be None.
            attention: bool, whether to explain the document.
            progress: see `predict_batches`.

        Returns:
            list of `Answer`.
        """
        if prefixes is not None:
            raise UserError(
                "Prefixes are for models that generate text; this one predicts "
                "labels."
            )
        check_integers(n_best=n_best)
        rows = self._rows("serving_default", inputs, progress)
        explained = self.explain(inputs) if attention else [None] * len(rows)
        return [
            _answer(row, n_best, explanation)
            for row, explanation in zip(rows, explained, strict=True)
        ]

    def _blank(self):
        """An input without anything in it."""
        source = source_named(self.source)
        if source.types or source.is_file:
            return ""
        function = self.signatures["serving_default"]
        _, inputs = function.structured_input_signature
        _, *shape = inputs[self.source].shape
        if inputs[self.source].dtype.is_floating:
            return np.full([size or 1 for size in shape], np.nan)
        return [""]

    def _rows(self, name, inputs, progress=None):
        columns = {self.source: inputs}
        return predict_batches(
            self.signatures, name, columns, self.batch_size, progress
        )


def _probabilities(row):
    labels = [label.decode() for label in row["labels"]]
    return dict(zip(labels, map(float, row["probabilities"]), strict=True))


def _answer(row, n_best, explanation):
    probabilities = _probabilities(row)
    labels = list(probabilities)
    # Of equal ones the first, as in the graph.
    order = np.argsort(-row["probabilities"], kind="stable")[:n_best]
    record = {
        "label": row["label"].decode(),
        "probability": round(float(row["probability"]), 6),
        "probabilities": {k: round(v, 6) for k, v in probabilities.items()},
    }
    if explanation is not None:
        record["attention"] = explanation.to_json()
    return Answer(
        [Hypothesis(labels[i], probabilities[labels[i]]) for i in order],
        bool(row["truncated"]),
        record,
        explanation,
    )
