"""Evaluation of the tags of words."""

import itertools
import operator

import numpy as np

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
from kseq.evaluation.metrics import exact_match
from kseq.evaluation.score import chunks, first_rows, scores_of
from kseq.evaluation.span_f1 import are_bio, span_f1
from kseq.pictures import reliability_picture
from kseq.terminal import single_line
from kseq.user_error import UserError

_LONGEST = 500  # characters of a message


class Taggings:
    """Tags that a predictor gives to words, evaluated.

    Scores are `loss`, the mean negative log-probability of the true tag of a
    word; `accuracy` and `macro_f1` of words; `exact_match`, the fraction of
    the sentences whose tags are all right; and, where tags are in the BIO
    scheme, `span_f1`.

    Args:
        predictor: see `kseq.serving.TaggerPredictor`.
        sentences: has `texts` and `tags`, as `kseq.data.TaggedSentences` does.

    Attributes:
        results: dict, name of the metric -> `Score`, after `scores`.

    Raises:
        UserError: if the predictor does not know a tag.
    """

    columns = ("text", "tags", "predicted")
    hints = ()

    def __init__(self, predictor, sentences):
        self.predictor = predictor
        self.sentences = sentences
        self.results = {}
        self._tags = predictor.tags
        self._outputs = []  # a list of tags for each sentence
        self._certainties = []  # of each word
        check_tags(sentences, self._tags)

    def __len__(self):
        return len(self.sentences.texts)

    def scores(self, progress=None):
        """Tags all sentences and scores their tags.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name -> float.
        """
        self._outputs, self._certainties, probabilities = [], [], []
        places = range(len(self))
        for row, columns in self._distributions(progress, places):
            best = row.argmax(axis=-1)
            self._outputs.append([self._tags[number] for number in best])
            self._certainties.extend(row.max(axis=-1))
            probabilities.extend(row[np.arange(len(row)), columns])
        self.results = scores_of((accuracy, macro_f1), *self._words())
        of_sentences = [exact_match]
        if are_bio(self._tags):
            of_sentences.append(span_f1)
        self.results |= scores_of(of_sentences, *self._lines())
        values = {name: score.value for name, score in self.results.items()}
        return {"loss": cross_entropy(probabilities), **values}

    def fit_temperature(self, progress=None):
        """The temperature that fits the probabilities to the tags.

        Of thousands of tags it is fitted to a sample of the sentences, whose
        probabilities take about 256 MiB.

        Args:
            progress: see `scores`.

        Returns:
            A float, see `kseq.evaluation.fit_temperature`.
        """
        words = sum(map(len, self.sentences.tags))
        width = len(self._tags) * words / len(self)
        places = fitting_sample(len(self), width)
        rows, columns = [], []
        for row, numbers in self._distributions(progress, places):
            rows.append(row.copy())  # without the padding of its batch
            columns.append(numbers)
        return fit_temperature(np.concatenate(rows), np.concatenate(columns))

    def report(self):
        """The scores as lines of text, after `scores`."""
        predicted, true = self._words()
        lines = [score.text for score in self.results.values()]
        lines.append(self._reliability().text)
        return lines + class_lines(true, predicted, self._tags)

    def rows(self, count):
        """The first texts, their tags and the predicted ones, after `scores`.

        Tags are separated by spaces.
        """
        outputs, tags = self._lines()
        return first_rows(count, self.sentences.texts, tags, outputs)

    def pictures(self, count):
        """The confusion matrix and the reliability diagram, after `scores`.

        The matrix is that of up to 1,000 tags.

        Returns:
            A dict, name -> PNG.
        """
        predicted, true = self._words()
        return {
            **confusion_pictures(true, predicted, self._tags),
            "reliability": reliability_picture(*self._reliability()),
        }

    def _distributions(self, progress, places):
        """Yields the probabilities of a sentence, and its tags as columns.

        Args:
            progress: see `scores`.
            places: sequence of int, those of the sentences.
        """
        numbers = {tag: number for number, tag in enumerate(self._tags)}
        for part in chunks(places, len(self._tags)):
            texts = [self.sentences.texts[place] for place in part]
            found = self.predictor.probabilities(texts, progress)
            for place, text, row in zip(part, texts, found, strict=True):
                tags = self.sentences.tags[place]
                if len(row) != len(tags):
                    raise UserError(
                        f"The model reads {len(row)} words of a sentence of "
                        f"{len(tags)}: {single_line(text)[:_LONGEST]}"
                    )
                yield row, np.array([numbers[tag] for tag in tags], int)

    def _reliability(self):
        are_right = list(map(operator.eq, *self._words()))
        return reliability(self._certainties, are_right)

    def _words(self):
        """Predicted and true tags of all words."""
        return _flat(self._outputs), _flat(self.sentences.tags)

    def _lines(self):
        """Predicted and true tags of each sentence, in one string."""
        both = self._outputs, self.sentences.tags
        return tuple(list(map(" ".join, rows)) for rows in both)


def check_tags(sentences, tags):
    """UserError if sentences have a tag that is not one of `tags`."""
    check_known(_flat(sentences.tags), tags, "sentences have tags")


def _flat(rows):
    return list(itertools.chain.from_iterable(rows))
