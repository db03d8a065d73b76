"""How many outputs are the reference."""

from kseq.evaluation.score import Score, check_lengths


def exact_match(outputs, references):
    """The fraction of the outputs that equal their reference.

    Args:
        outputs: list of str.
        references: list of str.

    Returns:
        Score, 0 to 1, printed in percent.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> exact_match(["a", "b"], ["a", "c"]).text
        'exact match 50.00 %'
    """
    check_lengths(outputs, references)
    pairs = zip(outputs, references, strict=True)
    value = sum(a == b for a, b in pairs) / len(outputs)
    return Score(value, f"exact match {100 * value:.2f} %")
