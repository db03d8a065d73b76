"""Accuracy, F1 and the confusion matrix of labels, in NumPy."""

import numpy as np


def classification_scores(labels, predicted, classes):
    """Scores predicted labels against the true ones.

        precision = hits / predicted, recall = hits / true
        F1 = 2 hits / (predicted + true)

    A ratio without anything to divide by is zero.

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
            none of the classes.

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
    if len(labels) != len(predicted) or not labels:
        raise ValueError(
            "Expected one predicted label for each label, and at least one. "
            f"Received: {len(labels)} labels, {len(predicted)} predicted"
        )
    places = {name: place for place, name in enumerate(classes)}
    if unknown := {*labels, *predicted} - places.keys():
        raise ValueError(
            "labels and predicted must be among the classes "
            f"{', '.join(classes)}. Received: {', '.join(sorted(unknown))}"
        )

    confusion = np.zeros((len(classes), len(classes)), int)
    cells = [[places[name] for name in names] for names in (labels, predicted)]
    np.add.at(confusion, tuple(cells), 1)
    hits = confusion.diagonal()
    support, guesses = confusion.sum(axis=1), confusion.sum(axis=0)
    # Without anything to divide by there are no hits either.
    columns = {
        "precision": hits / np.maximum(guesses, 1),
        "recall": hits / np.maximum(support, 1),
        "f1": 2 * hits / np.maximum(guesses + support, 1),
        "support": support,
    }
    return {
        "accuracy": float(hits.sum() / len(labels)),
        "macro_f1": float(columns["f1"][guesses + support > 0].mean()),
        "confusion": confusion,
        "per_class": {
            name: {key: column[place].item() for key, column in columns.items()}
            for name, place in places.items()
        },
    }
