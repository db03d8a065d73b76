"""F1 of spans that are tagged in the BIO scheme."""

from kseq.evaluation.score import Score, check_lengths


def span_f1(outputs, references):
    """F1 of the spans of tagged sentences, all of the same weight.

        F1 = 2 hits / (predicted + true)

    A span is a B- tag and the I- tags of the same kind after it; an I- tag
    without them also begins a span. A hit is a predicted span with the kind,
    the beginning and the end of a true one. If there are no spans, the value
    is zero.

    Args:
        outputs: list of str, the predicted tags of each sentence, separated
            by spaces.
        references: list of str, the true ones.

    Returns:
        Score, 0 to 1.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> span_f1(["O B-to O", "B-to O"], ["O B-to I-to", "B-to O"]).text
        'span F1 0.5000'

    Reference:
        Tjong Kim Sang and De Meulder 2003, aclanthology.org/W03-0419,
        section 2.4.
    """
    check_lengths(outputs, references)
    hits = total = 0
    for output, reference in zip(outputs, references, strict=True):
        found, true = (set(_spans(tags)) for tags in (output, reference))
        hits += len(found & true)
        total += len(found) + len(true)
    value = 2 * hits / max(total, 1)
    return Score(value, f"span F1 {value:.4f}")


def are_bio(tags):
    """Whether all tags are O or begin with B- or I-, and some with B-."""
    return any(tag.startswith("B-") for tag in tags) and all(
        tag == "O" or tag.startswith(("B-", "I-")) for tag in tags
    )


def _spans(text):
    """(kind, first position, position after the last) of each span."""
    kind, start = "", 0
    for position, tag in enumerate([*text.split(" "), "O"]):
        prefix, _, other = tag.partition("-")
        if kind and (prefix != "I" or other != kind):
            yield kind, start, position
            kind = ""
        if not kind and prefix in ("B", "I"):
            kind, start = other, position
