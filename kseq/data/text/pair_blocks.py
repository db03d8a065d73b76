"""Pairs of lines, checked a thousand at a time."""

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np

from kseq.data.files.blank_text import has_blank_line, is_blank
from kseq.data.files.source_hashes import source_hashes
from kseq.data.files.text_files import LONGEST_LINE

PAIRS_OF_BLOCK = 1024  # fewer take longer; an odd line delays the whole block

# Sources, targets and, if they are known, their alignments.
Block = list[list[bytes]]


def blocks_of(
    sources: list[bytes], targets: list[bytes], counts: Counter
) -> Iterator[Block]:
    """The usable pairs of lists of any length, in blocks."""
    for start in range(0, len(sources), PAIRS_OF_BLOCK):
        block = slice(start, start + PAIRS_OF_BLOCK)
        yield usable_pairs(sources[block], targets[block], counts=counts)


def usable_pairs(
    sources: list[bytes],
    targets: list[bytes],
    *alignments: list[bytes],
    counts: Counter,
    with_blank: bool = False,
) -> Block:
    r"""Counts pairs, and leaves out those with a blank or very long side.

    Args:
        sources: lines without the newline.
        targets: as many.
        *alignments: as many, or none.
        counts: counts them, see `TextReport`.
        with_blank: whether those with a blank side are used, too.

    Returns:
        The pairs that are used, without any carriage return.

    Example:
    >>> usable_pairs([b"a\r", b""], [b"b", b"c"], counts=Counter())
    [[b'a'], [b'b']]
    """
    counts["pairs"] += len(sources)
    sides = [sources, targets, *alignments]
    if not (_is_clean(sources) and _is_clean(targets)):
        used = [
            _count(source, target, counts, with_blank)
            for source, target in zip(sources, targets, strict=True)
        ]
        sides = [list(itertools.compress(side, used)) for side in sides]
    return [_without_returns(side) for side in sides]


def pair_hashes(sources: list[bytes], targets: list[bytes]) -> np.ndarray:
    """(2, B) int64, the same for the same sources and for the same pairs."""
    sources = [text.strip() for text in sources]
    targets = [text.strip() for text in targets]
    pairs = map(b"\t".join, zip(sources, targets, strict=True))
    return np.stack([source_hashes(sources), source_hashes(pairs)])


def _is_clean(lines):
    """Whether all lines are short UTF-8, and none is blank."""
    if max(map(len, lines)) > LONGEST_LINE:
        return False
    try:
        text = b"\n".join(lines).decode()
    except UnicodeDecodeError:
        return False
    return not has_blank_line(text)


def _count(source, target, counts, with_blank) -> bool:
    """Counts what is wrong with a pair, and returns whether it is usable."""
    counts["invalid"] += not (_is_utf8(source) and _is_utf8(target))
    sizes = [
        0 if is_blank(text) else len(text.replace(b"\r", b"").strip())
        for text in (source, target)
    ]
    if max(sizes) > LONGEST_LINE:
        counts["too_long"] += 1
    elif min(sizes) == 0:
        counts["blank"] += 1
    return (with_blank or min(sizes) > 0) and max(sizes) <= LONGEST_LINE


def _is_utf8(text) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_returns(lines):
    if not any(b"\r" in line for line in lines):
        return lines
    return [line.replace(b"\r", b"") for line in lines]
