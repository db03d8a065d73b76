"""Tags from Python lists: a tagger without tensors."""

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from kseq.serving.answer import Answer, Hypothesis, rounded
from kseq.serving.predict_batches import Progress, Signatures, predict_batches
from kseq.user_error import UserError, check_integers

if TYPE_CHECKING:  # an export needs no model code
    from kseq.serving.tagger import Tagger


class TaggerPredictor:
    """Tags the words of a list of sentences.

    `kseq.load` returns one for a run or an export that answers with tags.

    Args:
        signatures: dict of functions, see `kseq.serving.Tagger`.
        served: the `Tagger`, where there is one: not for an export.
        batch_size: int or None, sentences read at once, see
            `predict_batches`.

    Attributes:
        model: the `keras.Model` of a run; None for an export.
        source: "text", what the signatures call an input.

    Raises:
        UserError: for a method whose signature the export does not have.

    Example:
        >>> tagger = kseq.load("saved_models/journeys")  # doctest: +SKIP
        >>> tagger(["from Oslo to New York"])  # doctest: +SKIP
        [['O', 'B-from', 'O', 'B-to', 'I-to']]
    """

    source = "text"

    def __init__(
        self,
        signatures: Signatures,
        served: "Tagger | None" = None,
        batch_size: int | None = None,
    ):
        self.signatures = signatures
        self.served = served
        self.batch_size = batch_size
        self.model = served.model if served else None

    def __call__(
        self,
        inputs: list[str] | list[bytes],
        progress: Progress | None = None,
    ) -> list[list[str]]:
        """The tags of each sentence.

        Args:
            inputs: list of str or bytes, words separated by white space.
            progress: see `predict_batches`.

        Returns:
            A list of lists of str, a tag for each word.
        """
        rows = self._rows("serving_default", inputs, progress)
        return [_strings(row["tags"]) for row in rows]

    @property
    def tags(self) -> list[str]:
        """The tagset, a list of str in the order of the model's classes."""
        if self.served:
            return list(self.served.tags)
        [row] = self._rows("distribution", [""])
        return _strings(row["tagset"])

    def probabilities(
        self,
        inputs: list[str] | list[bytes],
        progress: Progress | None = None,
    ) -> list[np.ndarray]:
        """All tags' probabilities for each word.

        Args:
            inputs: as in a call.
            progress: as in a call.

        Returns:
            A list of (W, C) float32 arrays, their columns as in `tags`.
        """
        rows = self._rows("distribution", inputs, progress)
        return [
            row["probabilities"][: len(_strings(row["words"]))] for row in rows
        ]

    def explain(self, inputs: list[str] | list[bytes]) -> NoReturn:
        """Refused: there is nothing to show."""
        raise UserError(
            "A tagger has no attention to show; predict --json gives the "
            "probability of each tag."
        )

    def answers(
        self,
        inputs: list[str] | list[bytes],
        *,
        n_best: int = 1,
        prefixes: list[str] | list[bytes] | None = None,
        attention: bool = False,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """The tags of each sentence as a line of text.

        Args:
            inputs: as in a call.
            n_best: must be 1.
            prefixes: must be None.
            attention: must be False.
            progress: as in a call.

        Returns:
            list of `Answer`. Its text is the tags, separated by spaces; its
            score is the sum of their log-probabilities.
        """
        check_integers(n_best=n_best)
        if n_best > 1 or prefixes is not None:
            raise UserError("A tagger has one answer, without a prefix.")
        if attention:
            self.explain(inputs)
        rows = self._rows("serving_default", inputs, progress)
        return list(map(_answer, rows))

    def _rows(self, name, inputs, progress=None):
        return predict_batches(
            self.signatures,
            name,
            {self.source: inputs},
            self.batch_size,
            progress,
        )


def _strings(values):
    """Strings without padding, which is empty; words and tags are not."""
    return [value.decode() for value in values if value]


def _answer(row):
    tags = _strings(row["tags"])
    probabilities = row["probabilities"][: len(tags)]
    score = float(np.sum(np.log(probabilities.astype(float))))
    record = {
        "words": _strings(row["words"]),
        "tags": tags,
        "probabilities": rounded(probabilities),
        "score": round(score, 6),
    }
    return Answer(
        [Hypothesis(" ".join(tags), score)], bool(row["truncated"]), record
    )
