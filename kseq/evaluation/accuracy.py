"""Share of labels that are right."""

from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.score import Score


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
