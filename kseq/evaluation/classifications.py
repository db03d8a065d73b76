"""Evaluation of the labels of documents."""

import itertools

import numpy as np

from kseq.evaluation.accuracy import accuracy
from kseq.evaluation.chunks import chunks
from kseq.evaluation.classification_scores import classification_scores
from kseq.evaluation.evidence_found import evidence_found
from kseq.evaluation.macro_f1 import macro_f1
from kseq.evaluation.score import scores_of
from kseq.one_line import one_line
from kseq.pictures import confusion_picture, document_picture
from kseq.user_error import UserError

_LONGEST = 500  # characters of a message; it may hold whole texts


class Classifications:
    """Labels that a predictor gives to documents, evaluated.

    Args:
        predictor: see `kseq.serving.ClassifierPredictor`.
        documents: has `texts`, `labels` and `evidence`, as
            `kseq.data.Documents` does.
        metrics: functions of outputs and references, see `Score`.

    Attributes:
        results: dict, name of the metric -> `Score`, after `scores`.

    Raises:
        UserError: if the predictor does not know a label.
    """

    columns = ("text", "label", "predicted")
    hints = ("See what decided:     kseq explain {path} < FILE > page.html",)

    def __init__(self, predictor, documents, metrics=(accuracy, macro_f1)):
        self.predictor = predictor
        self.documents = documents
        self.metrics = metrics
        self._outputs = []
        self.results = {}
        self._labels = predictor.labels
        check_labels(documents, self._labels)

    def __len__(self):
        return len(self.documents.texts)

    def scores(self, progress=None):
        """Classifies all documents and scores their labels.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name of the metric -> float; and `loss`, the mean negative
            log-probability of the true label.
        """
        self._outputs, likelihoods = [], []
        labels = iter(self.documents.labels)
        for texts in chunks(self.documents.texts):
            for row in self.predictor.probabilities(texts, progress):
                self._outputs.append(max(row, key=row.get))
                likelihoods.append(row[next(labels)])
        losses = -np.log(np.maximum(likelihoods, 1e-30))
        self.results = scores_of(
            self.metrics, self._outputs, self.documents.labels
        )
        values = {name: score.value for name, score in self.results.items()}
        return {"loss": float(np.mean(losses)), **values}

    def report(self):
        """The scores as lines of text, after `scores`."""
        lines = [score.text for score in self.results.values()]
        for label, row in self._table()["per_class"].items():
            numbers = "  ".join(f"{k} {v:.4g}" for k, v in row.items())
            lines.append(f"{one_line(label)}: {numbers}")
        if self.documents.evidence:
            lines += evidence_found(self.predictor, self.documents)
        return lines

    def rows(self, count):
        """The first texts, labels and predicted labels, after `scores`."""
        rows = zip(
            self.documents.texts,
            self.documents.labels,
            self._outputs,
            strict=True,
        )
        return list(itertools.islice(rows, count))

    def pictures(self, count):
        """The confusion matrix, after `scores`, and the first documents.

        Returns:
            A dict, name -> PNG.
        """
        pictures = {
            "confusion": confusion_picture(
                self._table()["confusion"], self._labels
            )
        }
        explained = self.predictor.explain(self.documents.texts[:count])
        for number, document in enumerate(explained):
            title = (
                f"{document.label} ({document.probability:.0%}); true label: "
                f"{self.documents.labels[number]}"
            )
            pictures[f"documents/{number}"] = document_picture(document, title)
        return pictures

    def _table(self):
        return classification_scores(
            self.documents.labels, self._outputs, self._labels
        )


def check_labels(documents, labels):
    """UserError if documents have a label that is not one of `labels`."""
    if unknown := set(documents.labels) - set(labels):
        raise UserError(
            "The documents have labels that the model does not know: "
            f"{one_line(', '.join(sorted(unknown)))[:_LONGEST]}"
        )
