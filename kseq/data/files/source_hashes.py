"""Hashes of texts, the same in Python and in tf.data."""

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
        hashes.append(_hashes(tf.constant(block, tf.string)).numpy())
    return np.concatenate(hashes)


def choose_held_out(hashes: np.ndarray, most: int | None = None) -> np.ndarray:
    """Chooses which sources are held out: whole groups of the same source.

    They are chosen by their hash, so the same text gives the same ones. Sources
    with more pairs than `most` are chosen last; at least one source is held
    out, and at least one is not.

    Args:
        hashes: (N,) int64, of the sources of all pairs.
        most: about how many pairs are held out; by default a tenth of them,
            at most 1,000.

    Returns:
        (H,) int64, sorted; empty if there is only one source.

    Example:
    >>> choose_held_out(np.array([7, 3, 3, 9, 3]), most=2)
    array([7, 9])
    """
    return choose_held_out_of_parts([hashes], len(hashes), most)


def choose_held_out_of_parts(
    parts: Iterable[np.ndarray], total: int, most: int | None = None
) -> np.ndarray:
    """Chooses as `choose_held_out`, with one part of the hashes in memory.

    Args:
        parts: of hashes (N,) int64: those of a part are larger than those of
            the parts before.
        total: number of all hashes.
        most: see `choose_held_out`.
    """
    if most is None:
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


def are_among(texts: tf.Tensor, hashes: np.ndarray) -> tf.Tensor:
    """Whether the hash of each text, (B,), is in a sorted array."""
    own = _hashes(texts)
    places = tf.searchsorted(hashes, own)
    return tf.gather(hashes, tf.minimum(places, len(hashes) - 1)) == own


def _hashes(texts):
    return tf.strings.to_hash_bucket_fast(tf.strings.strip(texts), NUM_HASHES)
