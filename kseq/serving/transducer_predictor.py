"""Bits from Python lists: a transducer without tensors."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kseq.data.algorithms.as_vectors import as_vectors
from kseq.serving.answer import Answer, Hypothesis, rounded
from kseq.serving.memory_use import MemoryUse
from kseq.serving.predict_batches import Progress, Signatures, predict_batches
from kseq.user_error import UserError, check_integers

if TYPE_CHECKING:  # an export needs no model code
    from kseq.serving.transducer import Transducer


class TransducerPredictor:
    """Answers sequences of vectors by the probabilities of bits.

    `kseq.load` gives one for a run or an export that answers with vectors.

    Args:
        signatures: dict of functions, see `kseq.serving.Transducer`.
        served: the `Transducer`, where there is one: not for an export.
        batch_size: int or None, sequences read at once, see `predict_batches`.

    Attributes:
        model: the `keras.Model` of a run; None for an export.
        source: "vectors", what the signatures call an input.

    Raises:
        UserError: for sequences of anything but vectors of the right size.

    Example:
        >>> copy = kseq.load("saved_models/copy")  # doctest: +SKIP
        >>> [probabilities] = copy([vectors])  # doctest: +SKIP
        >>> probabilities.shape  # doctest: +SKIP
        (41, 8)
    """

    source = "vectors"

    def __init__(
        self,
        signatures: Signatures,
        served: "Transducer | None" = None,
        batch_size: int | None = None,
    ):
        self.signatures = signatures
        self.served = served
        self.batch_size = batch_size
        self.model = served.model if served else None

    @property
    def num_features(self) -> int:
        """F, features of a vector."""
        if self.served:
            return self.served.preprocessor.num_features
        function: Any = self.signatures["serving_default"]
        _, inputs = function.structured_input_signature
        shape = inputs["vectors"].shape
        if shape.rank != 3 or shape[2] is None:
            raise UserError(
                "Expected a model of vectors, of the shape (None, None, F). "
                f"Received: {shape}"
            )
        return shape[2]

    def __call__(
        self,
        inputs: list[Any],
        progress: Progress | None = None,
    ) -> list[np.ndarray]:
        """The probabilities of each sequence.

        Args:
            inputs: list of (T, F) float arrays or nested lists.
            progress: see `predict_batches`.

        Returns:
            A list of (T, D) float32 arrays.
        """
        inputs, rows = self._rows("serving_default", inputs, progress)
        return [
            row["probabilities"][: len(vectors)]
            for vectors, row in zip(inputs, rows, strict=True)
        ]

    def explain(self, inputs: list[Any]) -> list[MemoryUse]:
        """The `MemoryUse` of each sequence, from a model with a memory."""
        if "explain" not in self.signatures:
            raise UserError(
                "This model has no memory to show: it has no signature "
                f"explain; it has {', '.join(sorted(self.signatures))}."
            )
        inputs, rows = self._rows("explain", inputs)
        return [
            MemoryUse.of_row(vectors, row)
            for vectors, row in zip(inputs, rows, strict=True)
        ]

    def page(self, uses: Iterable[MemoryUse]) -> str:
        """HTML of what `explain` returned, see `kseq.pictures`."""
        from kseq.pictures import memory_page  # predict needs none

        return memory_page(uses)

    def answers(
        self,
        inputs: list[Any],
        *,
        n_best: int = 1,
        prefixes: list[str] | list[bytes] | None = None,
        attention: bool = False,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """The bits of each sequence as JSON.

        Args:
            inputs: list of (T, F) float arrays or nested lists.
            n_best: must be 1.
            prefixes: must be None.
            attention: bool, whether to explain the memory.
            progress: see `predict_batches`.

        Returns:
            list of `Answer`. Its text is a JSON array of arrays of bits; its
            score is their log-probability.
        """
        check_integers(n_best=n_best)
        if n_best > 1 or prefixes is not None:
            raise UserError("This model has one answer, without a prefix.")
        found = self(inputs, progress)
        explained = self.explain(inputs) if attention else [None] * len(found)
        return list(map(_answer, found, explained))

    def _rows(self, name, inputs, progress=None):
        size = self.num_features
        arrays = [as_vectors(vectors, size) for vectors in inputs]
        columns = {self.source: arrays}
        rows = predict_batches(
            self.signatures, name, columns, self.batch_size, progress
        )
        return arrays, rows


def _answer(probabilities, explanation):
    bits = (probabilities > 0.5).astype(int).tolist()
    sure = np.maximum(probabilities, 1 - probabilities).astype(float)
    score = float(np.sum(np.log(sure)))
    record = {
        "bits": bits,
        "score": round(score, 6),
        "probabilities": rounded(probabilities),
    }
    if explanation is not None:
        record["memory"] = explanation.to_json()
    text = json.dumps(bits, separators=(",", ":"))
    return Answer([Hypothesis(text, score)], False, record, explanation)
