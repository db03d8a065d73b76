"""The built-in corpus of running text: brackets that match."""

from kseq.data.files.split_range import different_examples, split_range

SIZES = {"train": 20_000, "validation": 500, "test": 1_000}

_PAIRS = ("()", "[]", "{}", "<>")
_FEWEST, _MOST = 2, 16  # pairs of a document
_OPENS = 0.6  # probability that a bracket opens where both are possible


def brackets(split: str, size: int | None = None, seed: int = 0) -> list[str]:
    """Documents of four kinds of brackets, nested, of 2 to 16 pairs each.

    Whatever is opened last is closed first. No two documents are the same.

    Args:
        split: "train", "validation" or "test".
        size: number of documents, at most and by default `SIZES[split]`.
        seed: of all that is drawn.

    Raises:
        ValueError: there is no such split, or it is smaller.

    Example:
    >>> all(map(are_matched, brackets("test", 100)))
    True
    """
    places = split_range(split, size, SIZES)
    return different_examples(places, seed, _document)


def _document(draw) -> str:
    pairs, text, open_ones = draw.randint(_FEWEST, _MOST), [], []
    while pairs or open_ones:
        if pairs and (not open_ones or draw.random() < _OPENS):
            opening, closing = draw.choice(_PAIRS)
            text.append(opening)
            open_ones.append(closing)
            pairs -= 1
        else:
            text.append(open_ones.pop())
    return "".join(text)


def are_matched(text: str) -> bool:
    """Whether a text has brackets only, and each one matches.

    Example:
    >>> [are_matched(text) for text in ("<[]>()", "<[>]", "(", "a")]
    [True, False, False, False]
    """
    closing_of = dict(_PAIRS)
    open_ones = []
    for character in text:
        if character in closing_of:
            open_ones.append(closing_of[character])
        elif not open_ones or open_ones.pop() != character:
            return False
    return bool(text) and not open_ones
