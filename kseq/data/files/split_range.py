"""The splits of a built-in corpus, as ranges of a stream of examples."""

import itertools
import random
from collections.abc import Callable, Hashable
from typing import Any

from kseq.user_error import check_choice, check_integers


def split_range(split: str, size: int | None, sizes: dict[str, int]) -> range:
    """The positions of a split in a stream of all splits, one after the other.

    Args:
        split: one of `sizes`.
        size: number of examples, at most and by default those of the split.
        sizes: of all splits, in their order.

    Raises:
        ValueError: there is no such split, or it is smaller.

    Example:
    >>> split_range("test", 2, {"train": 10, "test": 5})
    range(10, 12)
    """
    check_choice("split", split, [*sizes])
    most = sizes[split]
    check_integers(size=size, maximum=most, optional=True)
    size = most if size is None else size
    splits = list(sizes)
    start = sum(sizes[name] for name in splits[: splits.index(split)])
    return range(start, start + size)


def different_examples(
    places: range,
    seed: int,
    make: Callable[[random.Random], Any],
    key: Callable[[Any], Hashable] = lambda example: example,
) -> list[Any]:
    """Random examples at some positions of a stream, in which no one repeats.

    Args:
        places: see `split_range`.
        seed: of the whole stream.
        make: function that draws an example.
        key: function of an example; those with the same key are one.

    Example:
    >>> different_examples(range(1, 6), 1, lambda draw: draw.randint(1, 6))
    [5, 1, 3, 4, 6]
    """

    def examples():
        draw, seen = random.Random(seed), set()
        while True:
            example = make(draw)
            if key(example) not in seen:
                seen.add(key(example))
                yield example

    return list(itertools.islice(examples(), places.start, places.stop))
