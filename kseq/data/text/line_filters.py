"""Filters of pairs that are probably no translations of each other."""

import dataclasses
import functools
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from kseq.data.files.blank_text import is_blank
from kseq.data.files.data_error import DataError
from kseq.user_error import check_integers

ANY = "any"  # script
_OF_THE_SCRIPT = 0.5  # of the letters of a line, at least
_LAST_LETTER = 0x323AF
# How the names of characters begin, where that is not the name of the script.
_BEGINNINGS = {
    "HAN": "CJK",
    "JAPANESE": "CJK|HIRAGANA|KATAKANA",
    "KOREAN": "CJK|HANGUL",
}


@dataclasses.dataclass(frozen=True)
class LineFilters:
    """Which pairs are left out.

    Args:
        max_characters: characters of a side, at most.
        max_ratio: how many times longer one side can be, in characters.
        scripts: names in Unicode of the scripts of source and target, such as
            "Latin", "Cyrillic" or "Han"; also "Japanese", "Korean", or "any".
            At least half of the letters of a line must be of its script.

    Raises:
        DataError: there is no such script, or no pair has such a ratio.
    """

    max_characters: int = 1000
    max_ratio: float = 9.0
    scripts: tuple[str, str] = (ANY, ANY)

    def __post_init__(self):
        check_integers(max_characters=self.max_characters)
        if not self.max_ratio >= 1:
            raise DataError(
                "max_ratio must be a number of at least 1. Received: "
                f"max_ratio={self.max_ratio!r}"
            )
        for script in self.scripts:
            if script != ANY and not _letters_of(script).any():
                raise DataError(
                    "A script has a name such as Latin, Cyrillic, Arabic, Han, "
                    f"Japanese or Korean, or is any. Received: {script!r:.80}"
                )

    def described(self, counts: Counter) -> str:
        """The counts of `kept_pairs` in words."""
        source, target = self.scripts
        found = {
            "empty": "empty",
            "too_long": f"longer than {self.max_characters} characters",
            "length_ratio": f"with a length ratio over {self.max_ratio:g}",
            "wrong_script": f"not in the scripts {source} and {target}",
            "identical": "with a source equal to the target",
            "duplicate": "duplicates",
        }
        return ", ".join(
            f"{counts[reason]} {text}" for reason, text in found.items()
        )


def kept_pairs(
    sources: Sequence[bytes],
    targets: Sequence[bytes],
    filters: LineFilters,
    seen: set[bytes] | None = None,
) -> tuple[np.ndarray, Counter]:
    r"""Filters pairs of lines.

    A pair is left out for the first of these reasons: a side is `empty` or
    `too_long`, the `length_ratio` is too high, a side is in the
    `wrong_script`, both sides are `identical`, or it is a `duplicate`. White
    space at the ends of lines is ignored.

    Args:
        sources: B lines, UTF-8.
        targets: B lines.
        filters: which pairs are left out.
        seen: hashes of the pairs that were kept before, to which those of this
            call are added; about 75 bytes each. By default only duplicates
            among these pairs are found.

    Returns:
        (B,) bool, which pairs are kept; and how many are not, by reason.

    Example:
    >>> filters = LineFilters(scripts=("any", "Latin"))
    >>> kept_pairs([b"Ja.", b"Ja.", b"x"], [b"Yes.", b"Yes.", b"x"], filters)
    (array([ True, False, False]), Counter({'identical': 1, 'duplicate': 1}))
    """
    sources = [text.strip() for text in sources]
    targets = [text.strip() for text in targets]
    sides = sources, targets
    lengths = np.stack([_lengths(texts) for texts in sides])
    longest, shortest = lengths.max(0), lengths.min(0)
    same = map(bytes.__eq__, sources, targets)
    wrong = [
        ~_are_in_script(texts, script)
        for texts, script in zip(sides, filters.scripts, strict=True)
    ]
    reasons = {
        "empty": np.logical_or(*([*map(is_blank, side)] for side in sides)),
        "too_long": longest > filters.max_characters,
        "length_ratio": longest > filters.max_ratio * shortest,
        "wrong_script": np.logical_or(*wrong),
        "identical": np.fromiter(same, bool, len(sources)),
    }
    kept, counts = np.ones(len(sources), bool), Counter()
    for reason, found in reasons.items():
        counts[reason] += int(np.count_nonzero(found & kept))
        kept &= ~found.astype(bool)
    seen = set() if seen is None else seen
    for place in np.flatnonzero(kept):
        pair = b"%b\n%b" % (sources[place], targets[place])
        digest = hashlib.blake2b(pair, digest_size=8).digest()
        kept[place] = digest not in seen
        seen.add(digest)
    left_out = len(kept) - int(np.count_nonzero(kept))
    counts["duplicate"] = left_out - counts.total()
    return kept, +counts


def _lengths(texts) -> np.ndarray:
    """The number of characters of each text."""
    content = np.frombuffer(b"".join(texts), np.uint8)
    begun = np.concatenate([[0], np.cumsum(content & 0xC0 != 0x80)])
    ends = np.cumsum([0, *map(len, texts)])
    return np.diff(begun[ends])


def _are_in_script(texts, script) -> np.ndarray:
    """Whether at least half of the letters of each text are of a script."""
    if script == ANY or not texts:
        return np.ones(len(texts), bool)
    text = b"\n".join([*texts, b""]).decode(errors="replace")
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    ends = np.flatnonzero(codes == ord("\n")) + 1
    codes = np.minimum(codes, _LAST_LETTER + 1)
    own, letters = (
        np.add.reduceat(table[codes], [0, *ends[:-1]], dtype=np.int32)
        for table in (_letters_of(script), _letters_of(""))
    )
    return own >= _OF_THE_SCRIPT * letters


@functools.cache
def _letters_of(script) -> np.ndarray:
    """Which code points are letters of a script, or of any for ""; bool."""
    script = script.upper()
    beginning = re.compile(
        rf"((FULL|HALF)WIDTH )?({_BEGINNINGS.get(script) or re.escape(script)})"
        + r"\b" * bool(script)
    )
    found = np.zeros(_LAST_LETTER + 2, bool)
    for code in range(_LAST_LETTER + 1):
        letter = chr(code)
        if unicodedata.category(letter).startswith("L"):
            name = unicodedata.name(letter, "")
            found[code] = beginning.match(name) is not None
    return found
