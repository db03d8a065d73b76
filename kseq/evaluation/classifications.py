"""Evaluation of the labels of documents, and of other inputs."""

import operator

import numpy as np

from kseq.evaluation.attention_on_evidence import attention_on_evidence
from kseq.evaluation.calibration import (
    fit_temperature,
    fitting_sample,
    reliability,
)
from kseq.evaluation.classification_scores import (
    accuracy,
    check_known,
    class_lines,
    confusion_pictures,
    cross_entropy,
    macro_f1,
)
from kseq.evaluation.resampling import with_intervals
from kseq.evaluation.score import chunks, first_rows, scores_of
from kseq.pictures import (
    document_picture,
    reliability_picture,
)


class Classifications:
    """Labels that a predictor gives to its inputs, evaluated.

    Args:
        predictor: see `kseq.serving.ClassifierPredictor`.
        examples: has `inputs`, what the predictor is given; `names`, the text
            that is shown of each; `labels`; and `evidence`, which may be None.
            `kseq.data.Documents` is one.
        metrics: functions of outputs and references, see `Score`.

    Attributes:
        results: dict, name of the metric -> `Score`, after `scores`.

    Raises:
        UserError: if the predictor does not know a label.
    """

    columns = ("text", "label", "predicted")
    hints = ("See what decided:     kseq explain {path} {inputs} > page.html",)

    def __init__(self, predictor, examples, metrics=(accuracy, macro_f1)):
        self.predictor = predictor
        self.examples = examples
        self.metrics = metrics
        self._outputs, self._certainties = [], []
        self.results = {}
        self._labels = predictor.labels
        check_labels(examples, self._labels)

    def __len__(self):
        return len(self.examples.inputs)

    def scores(self, progress=None):
        """Classifies all inputs and scores their labels.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name of the metric -> float; and `loss`, the mean negative
            log-probability of the true label.
        """
        self._outputs, self._certainties, probabilities = [], [], []
        labels = iter(self.examples.labels)
        for inputs in chunks(self.examples.inputs, len(self._labels)):
            for row in self.predictor.probabilities(inputs, progress):
                self._outputs.append(max(row, key=row.get))
                self._certainties.append(max(row.values()))
                probabilities.append(row[next(labels)])
        self.results = scores_of(
            self.metrics, self._outputs, self.examples.labels
        )
        values = {name: score.value for name, score in self.results.items()}
        return {"loss": cross_entropy(probabilities), **values}

    def fit_temperature(self, progress=None):
        """The temperature that fits the probabilities to the labels.

        Of thousands of labels it is fitted to a sample of the examples, whose
        probabilities take 256 MiB.

        Args:
            progress: see `scores`.

        Returns:
            A float, see `kseq.evaluation.fit_temperature`.
        """
        columns = {label: column for column, label in enumerate(self._labels)}
        places = fitting_sample(len(self), len(columns))
        inputs = [self.examples.inputs[place] for place in places]
        rows = [
            np.array([*row.values()], "float32")
            for part in chunks(inputs, len(columns))
            for row in self.predictor.probabilities(part, progress)
        ]
        labels = [columns[self.examples.labels[place]] for place in places]
        return fit_temperature(rows, labels)

    def report(self):
        """The scores as lines of text, after `scores`.

        Where lines can be resampled, they have 95 % confidence intervals.
        """
        lines = with_intervals(
            [*self.results.values()],
            self.metrics,
            self._outputs,
            self.examples.labels,
        )
        lines.append(self._reliability().text)
        lines += class_lines(self.examples.labels, self._outputs, self._labels)
        if self.examples.evidence:
            lines += attention_on_evidence(self.predictor, self.examples)
        return lines

    def rows(self, count):
        """The first names, labels and predicted labels, after `scores`."""
        examples = self.examples
        return first_rows(count, examples.names, examples.labels, self._outputs)

    def pictures(self, count):
        """The pictures of `scores`, and the first explanations.

        Those are the confusion matrix, of up to 1,000 labels, and the
        reliability diagram.

        Returns:
            A dict, name -> PNG.
        """
        pictures = confusion_pictures(
            self.examples.labels, self._outputs, self._labels
        )
        pictures["reliability"] = reliability_picture(*self._reliability())
        explained = self.predictor.explain(self.examples.inputs[:count])
        for number, explanation in enumerate(explained):
            title = (
                f"{self._outputs[number]} ({self._certainties[number]:.0%}); "
                f"true label: {self.examples.labels[number]}"
            )
            pictures[f"documents/{number}"] = _draw(explanation, title)
        return pictures

    def _reliability(self):
        are_right = list(map(operator.eq, self._outputs, self.examples.labels))
        return reliability(self._certainties, are_right)


def _draw(explanation, title):
    if hasattr(explanation, "sentences"):
        return document_picture(explanation, title)
    return explanation._repr_png_()


def check_labels(examples, labels):
    """UserError if documents have a label that is not one of `labels`."""
    check_known(examples.labels, labels, "examples have labels")
