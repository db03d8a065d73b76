"""Share of outputs that equal their reference."""

from kseq.evaluation.score import Score, check_lengths, listed


def exact_match(outputs, references):
    """The fraction of the outputs that equal one of their references.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several.

    Returns:
        Score, 0 to 1, printed in percent.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> exact_match(["a", "b"], ["a", "c"]).text
        'exact match 50.00 %'
    """
    check_lengths(outputs, references)
    pairs = zip(outputs, listed(references), strict=True)
    value = sum(output in right for output, right in pairs) / len(outputs)
    return Score(value, f"exact match {100 * value:.2f} %")
