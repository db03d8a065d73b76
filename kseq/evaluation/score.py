"""The values of metrics, and what all evaluations do with them."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

_CHUNK = 4096  # answers that are held at once with all that is known of them
_NUMBERS = 2**21  # of all classes, that are held at once


class Score(NamedTuple):
    """The value of a metric of outputs and references.

    A metric is a function of both, lists of str of the same length; its name
    is the name of the score.

    Args:
        value: float.
        text: str, the value as it is printed; after two spaces, what says how
            it was computed, its signature.
    """

    value: float
    text: str

    @property
    def signature(self):
        """How it was computed, as sacreBLEU writes it, or nothing."""
        return self.text.partition("  ")[2]


def scores_of(metrics, outputs, references):
    """A dict, name of each metric -> its `Score` of the outputs."""
    return {metric.__name__: metric(outputs, references) for metric in metrics}


def first_rows(count, *columns):
    """The first rows of a table, whose columns have the same length."""
    return list(itertools.islice(zip(*columns, strict=True), count))


def chunks(inputs, width=1):
    """Yields parts of a list, in order; one that is empty has none.

    What is kept of the answers to one part is for the caller to choose, so
    that the rest of them does not fill the memory.

    Args:
        inputs: list.
        width: int, the numbers of an answer, one for each class; the parts are
            shorter where they are many.
    """
    size = max(1, min(_CHUNK, _NUMBERS // width))
    for start in range(0, len(inputs), size):
        yield inputs[start : start + size]


def check_lengths(outputs, references):
    """ValueError unless there are as many outputs as references, and some.

    Both must hold str: an equal number of bytes would count as wrong, and a
    str in place of a list as that many outputs.
    """
    for texts in (outputs, references):
        _check_texts(texts)
    if len(outputs) != len(references) or len(outputs) == 0:
        raise ValueError(
            "Expected one output for each reference, and at least one. "
            f"Received: {len(outputs)} outputs, {len(references)} references"
        )
    several = listed(references)
    if [] in several:
        raise ValueError(
            "Expected a reference for each output. Received: none for output "
            f"{several.index([]) + 1}"
        )


def _check_texts(texts):
    is_text = isinstance(texts, str)
    others = (text for text in _flat(texts) if not isinstance(text, str))
    for wrong in [texts] if is_text else others:
        raise ValueError(
            "Outputs and references must be lists of str. Received: "
            f"{'' if is_text else 'a list with '}{wrong!r:.60}"
        )


def _flat(texts):
    for text in texts:
        if isinstance(text, Iterable) and not isinstance(text, str | bytes):
            yield from text
        else:
            yield text


def listed(references):
    """References as lists: one reference may be a str."""
    return [[r] if isinstance(r, str) else list(r) for r in references]


def streams(references):
    """References as sacreBLEU takes them: the first ones, the second ones, ...

    Args:
        references: list of str, or of lists of str, which may differ in length.

    Returns:
        A list of lists, with None where there is no further reference.

    Example:
        >>> streams([["a", "b"], ["c"]])
        [['a', 'c'], ['b', None]]
    """
    return [list(row) for row in itertools.zip_longest(*listed(references))]
