"""The built-in corpus: dates as people write them, and as ISO 8601 does."""

import datetime
import functools
import random
import re
from collections import defaultdict
from typing import NamedTuple

from babel import Locale
from babel.dates import DateTimePattern, parse_pattern

LANGUAGES = (
    *("ar", "bg", "ca", "cs", "cy", "da", "de", "el", "en", "en_GB", "es"),
    *("et", "eu", "fi", "fr", "ga", "he", "hi", "hr", "hu", "id", "is", "it"),
    *("ja", "ko", "lt", "lv", "nb", "nl", "pl", "pt", "ro", "ru", "sk", "sl"),
    *("sv", "sw", "th", "tr", "uk", "vi", "zh"),
)
SIZES = {"train": 40_000, "validation": 1_000, "test": 1_000}

_FIRST_DAY = datetime.date(1900, 1, 1).toordinal()
_LAST_DAY = datetime.date(2099, 12, 31).toordinal()
_STYLES = ("full", "long", "medium")
_SKELETONS = ("yMMMd", "yMMMEd", "yMMMMd", "yMMMMEEEEd")
# Months as numbers are out, but for those that are marked as months.
_MONTH_IS_NAMED = re.compile("[ML]{3}|M月")


class _Writing(NamedTuple):
    """One way to write a date."""

    locale: Locale
    pattern: DateTimePattern

    def write(self, date):
        return self.pattern.apply(date, self.locale)


def dates(
    split: str, size: int | None = None, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Dates of 1900 to 2099 in 41 languages, and the same in ISO 8601.

    Every date stands once, in one split, and no string could be another
    date in another language.

    Args:
        split: "train", "validation" or "test".
        size: number of pairs, at most `SIZES[split]`, which it is if None.
        seed: of the choice of dates, languages and ways of writing.

    Returns:
        Sources and targets.

    Example:

    >>> sources, targets = dates("train", size=2)
    >>> sources
    ['', '']
    >>> targets
    ['', '']
    """
    if split not in SIZES:
        raise ValueError(
            f"split must be one of {', '.join(SIZES)}. Received: {split=}"
        )
    if size is None:
        size = SIZES[split]
    if not 0 < size <= SIZES[split]:
        raise ValueError(
            f"size must be between 1 and {SIZES[split]}. Received: {size=}"
        )
    days = random.Random(seed).sample(
        range(_FIRST_DAY, _LAST_DAY + 1), sum(SIZES.values())
    )
    for other, other_size in SIZES.items():
        if other == split:
            break
        days = days[other_size:]
    chosen = [datetime.date.fromordinal(day) for day in days[:size]]
    draw = random.Random(f"{seed} {split}")
    sources = [_draw_writing(draw, date).write(date) for date in chosen]
    return sources, [date.isoformat() for date in chosen]


def _draw_writing(draw, date) -> _Writing:
    writings = _unambiguous_writings()[date.month]
    return draw.choice(writings[draw.choice(LANGUAGES)])


@functools.cache
def _unambiguous_writings() -> dict[int, dict[str, list[_Writing]]]:
    """For each month, the ways to write it in each language.

    Where a string stands for two dates, their year and day are the same:
    it is a name that stands for two months. 28 years have all calendars
    that there are, so one day of every month is enough to find them.
    """
    probes = [
        datetime.date(year, month, 15)
        for year in range(2000, 2028)
        for month in range(1, 13)
    ]
    meanings = defaultdict(set)
    written = {}
    for language in LANGUAGES:
        for writing in _writings(language):
            texts = [writing.write(date) for date in probes]
            written[language, writing] = texts
            for text, date in zip(texts, probes, strict=True):
                meanings[text].add(date)
    ambiguous = {text for text, found in meanings.items() if len(found) > 1}

    writings = {month: defaultdict(list) for month in range(1, 13)}
    for (language, writing), texts in written.items():
        months = {
            date.month
            for text, date in zip(texts, probes, strict=True)
            if text in ambiguous
        }
        for month in range(1, 13):
            if month not in months:
                writings[month][language].append(writing)
    return writings


def _writings(language) -> list[_Writing]:
    locale = Locale.parse(language)
    patterns = [locale.date_formats[style].pattern for style in _STYLES]
    patterns += [
        locale.datetime_skeletons[skeleton].pattern
        for skeleton in _SKELETONS
        if skeleton in locale.datetime_skeletons
    ]
    return [
        _Writing(locale, parse_pattern(pattern))
        for pattern in dict.fromkeys(patterns)
        if _MONTH_IS_NAMED.search(pattern)
    ]
