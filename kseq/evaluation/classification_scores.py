"""Accuracy, F1 and the confusion matrix of labels, in NumPy."""

import numpy as np

from kseq.evaluation.metrics import exact_match
from kseq.evaluation.score import Score
from kseq.pictures import confusion_picture
from kseq.terminal import single_line
from kseq.user_error import UserError

_LONGEST = 500  # characters of a message; it may hold whole texts
_MOST_DRAWN = 1000  # classes; a picture has no more pixels than that


def accuracy(outputs, references):
    """The fraction of the predicted labels that are the true ones.

    Args:
        outputs: list of str, the predicted labels.
        references: list of str, the true ones.

    Returns:
        Score, 0 to 1, printed in percent.

    Raises:
        ValueError: if the lists are empty or differ in length.
    """
    value = exact_match(outputs, references).value
    return Score(value, f"accuracy {100 * value:.2f} %")


def macro_f1(outputs, references):
    """The mean F1 of the classes that occur, in truth or as predictions.

    Args:
        outputs: list of str, the predicted labels.
        references: list of str, the true ones.

    Returns:
        Score, 0 to 1.

    Raises:
        ValueError: if the lists are empty or differ in length.
    """
    classes = sorted({*outputs, *references})
    columns = _columns(*_positions(references, outputs, classes), len(classes))
    value = float(columns["f1"].mean())
    return Score(value, f"macro F1 {value:.4f}")


def classification_scores(labels, predicted, classes):
    """Scores predicted labels against the true ones.

        precision = hits / predicted, recall = hits / true
        F1 = 2 hits / (predicted + true)

    A ratio whose denominator is zero is zero.

    Args:
        labels: list of str, the true labels.
        predicted: list of str, one for each label.
        classes: sequence of str, all there are, in the order of the confusion
            matrix.

    Returns:
        A dict: `accuracy`, 0 to 1; `macro_f1`, 0 to 1, the mean F1 of the
        classes that occur, in truth or as predictions; `confusion`, (C, C)
        int, a row for each true class and a column for each predicted one;
        `per_class`, a dict from each class to its `precision`, `recall`, `f1`
        and `support`, the number of its true labels.

    Raises:
        ValueError: if the lists are empty or differ in length, or a label is
            not one of the classes.

    Example:
        >>> scores = classification_scores(
        ...     ["cat", "cat", "dog"], ["cat", "dog", "dog"], ["cat", "dog"]
        ... )
        >>> scores["confusion"]
        array([[1, 1],
               [0, 1]])
        >>> scores["per_class"]["cat"]
        {'precision': 1.0, 'recall': 0.5, 'f1': 0.666..., 'support': 2}
    """
    cells = _positions(labels, predicted, classes)
    columns = _columns(*cells, len(classes))
    confusion = np.zeros((len(classes), len(classes)), int)
    np.add.at(confusion, tuple(cells), 1)
    occurs = confusion.any(axis=0) | confusion.any(axis=1)
    return {
        "accuracy": float(confusion.trace() / len(labels)),
        "macro_f1": float(columns["f1"][occurs].mean()),
        "confusion": confusion,
        "per_class": _per_class(columns, classes),
    }


def _positions(labels, predicted, classes):
    """The positions of true and predicted labels: two lists of int."""
    if len(labels) != len(predicted) or len(labels) == 0:
        raise ValueError(
            "Expected one predicted label for each label, and at least one. "
            f"Received: {len(labels)} labels, {len(predicted)} predicted"
        )
    positions = {name: position for position, name in enumerate(classes)}
    if unknown := {*labels, *predicted} - positions.keys():
        raise ValueError(
            "labels and predicted must be among the classes "
            f"{', '.join(classes)}. Received: {', '.join(sorted(unknown))}"
        )

    return [
        [positions[name] for name in names] for names in (labels, predicted)
    ]


def _columns(true, predicted, count):
    """The scores of each class, from counts of classes and not of pairs."""
    true, predicted = np.array(true), np.array(predicted)
    hits, support, guesses = (
        np.bincount(found, minlength=count)
        for found in (true[true == predicted], true, predicted)
    )
    # Where a denominator is zero, there are no hits either.
    return {
        "precision": hits / np.maximum(guesses, 1),
        "recall": hits / np.maximum(support, 1),
        "f1": 2 * hits / np.maximum(guesses + support, 1),
        "support": support,
    }


def _per_class(columns, classes):
    return {
        name: {key: column[place].item() for key, column in columns.items()}
        for place, name in enumerate(classes)
    }


def class_lines(labels, predicted, classes):
    """The scores of each class, a line of text each."""
    cells = _positions(labels, predicted, classes)
    per_class = _per_class(_columns(*cells, len(classes)), classes)
    return [
        f"{single_line(name)}: "
        + "  ".join(f"{key} {value:.4g}" for key, value in scores.items())
        for name, scores in per_class.items()
    ]


def confusion_pictures(labels, predicted, classes):
    """The confusion matrix, unless there are more classes than can be drawn.

    Returns:
        A dict, `confusion` -> PNG; empty for more than 1,000 classes, whose
        pairs would not fit into memory.
    """
    if len(classes) > _MOST_DRAWN:
        return {}
    table = classification_scores(labels, predicted, classes)
    return {"confusion": confusion_picture(table["confusion"], classes)}


def cross_entropy(probabilities):
    """The mean negative logarithm of the probabilities of the true classes."""
    return float(np.mean(-np.log(np.maximum(probabilities, 1e-30))))


def check_known(labels, known, subject):
    """UserError if there are labels that a model does not know.

    Args:
        labels: iterable of str.
        known: those of the model.
        subject: str, what has them: "examples have labels".
    """
    if unknown := set(labels) - set(known):
        raise UserError(
            f"The {subject} that the model does not know: "
            f"{single_line(', '.join(sorted(unknown)))[:_LONGEST]}"
        )
