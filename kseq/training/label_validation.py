"""Validation of a classifier by its answers to texts, inside `fit`."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from kseq.evaluation.classification_scores import classification_scores
from kseq.evaluation.map_lines import map_lines
from kseq.pictures.confusion_picture import confusion_picture
from kseq.pictures.document_picture import document_picture
from kseq.serving.explained_document import explained_documents
from kseq.training.ema import ema_weights
from kseq.training.show_samples import show_samples


class LabelValidation(keras.callbacks.Callback):
    """Classifies the validation documents at the end of an epoch.

    It adds to the logs, where early stopping, checkpoints and metrics behind
    it find them: `val_loss`, the mean negative log-probability of the right
    label, `val_accuracy` and `val_macro_f1`. TensorBoard gets the confusion
    matrix and a few documents shaded by their weights, and, as `samples/`
    does, a table of texts and their labels. A model with moving averages of
    its weights is validated with them.

    Args:
        run: `RunDirectory`.
        classifier: has `classify`, `explain` and `labels`, as
            `kseq.serving.Classifier` does, over the model in training.
        documents: has `texts` and `labels`, as `kseq.data.Documents` does.
        samples: int, documents in the table.
        pictures: int, documents that are drawn.
    """

    def __init__(self, run, classifier, documents, *, samples=20, pictures=4):
        super().__init__()
        self.run = run
        self.classifier = classifier
        self.documents = documents
        self.samples = samples
        self.pictures = pictures

    def on_epoch_end(self, epoch, logs=None):
        with ema_weights(self.model):
            answers = map_lines(
                self.classifier.classify, self.documents.texts, batch_size=32
            )
            drawn = self.classifier.explain(
                tf.constant(self.documents.texts[: self.pictures])
            )
        predicted = [answer["label"].decode() for answer in answers]
        scores = classification_scores(
            self.documents.labels, predicted, self.classifier.labels
        )
        logs["val_loss"] = self._loss(answers)
        for name in ("accuracy", "macro_f1"):
            logs[f"val_{name}"] = scores[name]

        pictures = {
            "confusion": confusion_picture(
                scores["confusion"], self.classifier.labels
            )
        }
        for number, document in enumerate(explained_documents(drawn)):
            title = (
                f"{document.label} ({document.probability:.0%}); true label: "
                f"{self.documents.labels[number]}"
            )
            pictures[f"documents/{number}"] = document_picture(document, title)
        rows = zip(
            self.documents.texts, self.documents.labels, predicted, strict=True
        )
        show_samples(
            self.run,
            step=int(self.model.optimizer.iterations.numpy()),
            columns=("text", "label", "predicted"),
            rows=itertools.islice(rows, self.samples),
            pictures=pictures,
        )

    def _loss(self, answers):
        places = map(self.classifier.labels.index, self.documents.labels)
        likelihoods = [
            answer["probabilities"][place]
            for answer, place in zip(answers, places, strict=True)
        ]
        return float(-np.mean(np.log(np.maximum(likelihoods, 1e-30))))
