"""Alignments of the words of pairs, and those of their pieces."""

import re
from collections.abc import Sequence

from kseq.data.files.tables import beginning, broken
from kseq.data.files.text_files import Line

_LINK = re.compile(rb"(\d{1,9})-(\d{1,9})")
_LARGEST = 2**16 - 1  # uint16


def check_alignment(line: Line, links: bytes, source: bytes, target: bytes):
    """Checks the alignment of a row of a table, such as b"0-0 1-2".

    A link is a word of the source and one of the target, counted from 0; words
    are between white space.

    Raises:
        DataError: there is something else, or no such word.
    """
    if not links:
        return
    counts = [
        len(text.replace(b"\r", b"").decode(errors="replace").split())
        for text in (source, target)
    ]
    for link in links.split():
        match = _LINK.fullmatch(link)
        if match is None:
            raise broken(
                line, "an alignment, as in 0-0 1-2", found=beginning(link)
            )
        if any(map(int.__ge__, map(int, match.groups()), counts)):
            raise broken(
                line,
                f"links, counted from 0-0, of {counts[0]} source words and "
                f"{counts[1]} target words",
                found=link.decode(),
            )


def align_pieces(
    links: bytes, source_words: Sequence[int], target_words: Sequence[int]
) -> list[int]:
    """The alignment of pieces by that of words.

    The first piece of a word is aligned to the first piece of the first source
    word that the word has a link to, the second to the second, and so on; those
    for which there are none left, to the last.

    Args:
        links: see `check_alignment`.
        source_words: in which word, counted from 0, each piece begins.
        target_words: the same for T pieces of the target.

    Returns:
        T numbers: 0 for a piece without a link, otherwise 1 more than the
        position of its source piece, at most 2^16 - 1.

    Example:
    >>> align_pieces(b"1-0 0-1", [0, 1, 1], [0, 0, 0, 1, 2])
    [2, 3, 3, 1, 0]
    """
    source_of: dict[int, int] = {}
    for link in links.split():
        source, target = map(int, link.split(b"-"))
        source_of[target] = min(source, source_of.get(target, source))
    places: dict[int, list[int]] = {}
    for place, word in enumerate(source_words, start=1):
        places.setdefault(word, []).append(place)
    found, pieces_of = [], dict.fromkeys(target_words, 0)
    for word in target_words:
        of_source = places.get(source_of.get(word, -1), [0])
        place = of_source[min(pieces_of[word], len(of_source) - 1)]
        found.append(place if place <= _LARGEST else 0)
        pieces_of[word] += 1
    return found
