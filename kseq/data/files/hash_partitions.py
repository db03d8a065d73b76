"""Sorted hashes in many files, read in partitions of similar size."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kseq.data.files.source_hashes import NUM_HASHES, choose_held_out

_IN_MEMORY = 2**22  # hashes of a partition


class SortedHashes(NamedTuple):
    """Sorted int64 numbers in a file.

    Args:
        path: of the file.
        start: position of the first, in numbers.
        size: how many they are.
    """

    path: str
    start: int
    size: int

    def read(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """Some of the numbers."""
        last = self.size if last is None else last
        return np.fromfile(
            self.path, np.int64, last - first, offset=8 * (self.start + first)
        )


def partitions(
    *groups: Sequence[SortedHashes],
) -> Iterator[list[np.ndarray]]:
    """The hashes of groups of files, from the smallest to the largest.

    Yields:
        For each partition, one sorted array of each group.

    Example:
    >>> np.array([3, 9, 3]).tofile("hashes")
    >>> group = [SortedHashes("hashes", 0, 2), SortedHashes("hashes", 2, 1)]
    >>> list(partitions(group))
    [[array([3, 3, 9])]]
    """
    total = sum(part.size for group in groups for part in group)
    count = total // _IN_MEMORY + 1
    limits = [NUM_HASHES * n // count for n in range(1, count)]
    limits = np.array(limits, np.int64)
    places = [
        [[0, *np.searchsorted(part.read(), limits), part.size] for part in each]
        for each in groups
    ]
    for number in range(count):
        yield [
            _joined(
                part.read(place[number], place[number + 1])
                for part, place in zip(group, parts, strict=True)
            )
            for group, parts in zip(groups, places, strict=True)
        ]


def held_out_hashes(group: Sequence[SortedHashes]) -> np.ndarray:
    """What `choose_held_out` chooses from all hashes together.

    Example:
    >>> np.array([3, 9, 3]).tofile("hashes")
    >>> group = [SortedHashes("hashes", 0, 2), SortedHashes("hashes", 2, 1)]
    >>> held_out_hashes(group)
    array([9])
    """
    total = sum(part.size for part in group)
    parts = (hashes for (hashes,) in partitions(group))
    return choose_held_out(parts, total)


def _joined(arrays):
    return np.sort(np.concatenate([np.zeros(0, np.int64), *arrays]))
