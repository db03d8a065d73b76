"""F1, every class with the same weight."""

from kseq.evaluation.classification_scores import classification_scores
from kseq.evaluation.score import Score


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
    value = classification_scores(references, outputs, classes)["macro_f1"]
    return Score(value, f"macro F1 {value:.4f}")
