"""Hashes of texts, and which of them are held out of training."""

import itertools
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

NUM_HASHES = 2**63 - 1
MOST_HELD_OUT = 1000
_BLOCK = 2**14  # texts that are in memory together


def source_hashes(texts: Iterable[bytes]) -> np.ndarray:
    """(N,) int64, equal for texts that differ only in space at their ends."""
    texts, hashes = iter(texts), [np.zeros(0, np.int64)]
    while block := list(itertools.islice(texts, _BLOCK)):
        stripped = tf.strings.strip(tf.constant(block, tf.string))
        found = tf.strings.to_hash_bucket_fast(stripped, NUM_HASHES)
        hashes.append(found.numpy())
    return np.concatenate(hashes)


def choose_held_out(parts: Iterable[np.ndarray], total: int) -> np.ndarray:
    """Chooses which sources are held out: whole groups of the same source.

    They are chosen by their hash, so the same text gives the same ones: about
    a tenth of the pairs, at most 1,000. Sources with more pairs than that are
    chosen last; at least one source is held out, and at least one is not.

    Args:
        parts: hashes of the sources of all pairs, (N,) int64; those of a part
            are larger than those of the parts before.
        total: number of all pairs.

    Returns:
        (H,) int64, sorted; empty if there is only one source.

    Example:
    >>> choose_held_out([np.array([7, 3, 3, 9, 3])], total=5)
    array([7])
    """
    most = min(max(total // 10, 1), MOST_HELD_OUT)
    chosen, room, num_sources = [], most, 0
    smallest_large = (total + 1, 0)
    for hashes in parts:
        sources, counts = np.unique(hashes, return_counts=True)
        num_sources += len(sources)
        large = np.flatnonzero(counts > most)
        if len(large):
            number = large[np.argmin(counts[large])]
            found = int(counts[number]), int(sources[number])
            smallest_large = min(smallest_large, found)
        small = np.flatnonzero(counts <= most)
        sizes = np.cumsum(counts[small])
        fitting = np.count_nonzero(sizes <= room)
        chosen.extend(sources[small[:fitting]].tolist())
        if fitting < len(small):
            room = 0  # a group that does not fit ends the choice
        elif fitting:
            room -= int(sizes[-1])
    if not chosen and num_sources:
        chosen = [smallest_large[1]]
    return np.array(chosen[: max(num_sources - 1, 0)], np.int64)
