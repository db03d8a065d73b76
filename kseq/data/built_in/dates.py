"""The built-in corpus: dates as people write them, and as ISO 8601 does."""

import datetime
import functools
import itertools
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

_DAYS = range(
    datetime.date(1900, 1, 1).toordinal(),
    datetime.date(2100, 1, 1).toordinal(),
)
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
    >>> sources, targets = dates("train", size=3, seed=4)
    >>> sources
    ['sunnuntai 16. syyskuuta 1984', '2008年11月3日', '9. januar 1937']
    >>> targets
    ['1984-09-16', '2008-11-03', '1937-01-09']
    """
    if split not in SIZES:
        raise ValueError(
            f"split must be one of {', '.join(SIZES)}. Received: {split=}"
        )
    most = SIZES[split]
    size = most if size is None else size
    if not 0 < size <= most:
        raise ValueError(f"size must be 1 to {most}. Received: {size=}")

    days = iter(random.Random(seed).sample(_DAYS, sum(SIZES.values())))
    days_of = {
        name: list(itertools.islice(days, count))
        for name, count in SIZES.items()
    }
    draw = random.Random(f"{seed} {split}")
    sources, targets = [], []
    for day in days_of[split][:size]:
        date = datetime.date.fromordinal(day)
        writings = _writings_of_month()[date.month]
        writing = draw.choice(writings[draw.choice(LANGUAGES)])
        sources.append(writing.write(date))
        targets.append(date.isoformat())
    return sources, targets


@functools.cache
def _writings_of_month() -> dict[int, dict[str, list[_Writing]]]:
    """For every month, the ways to write it in each language.

    A string for two dates has one year and one day of the month in it, and
    names that mean one month here and another there. 28 years have every
    calendar there is, so one day of each of their months shows all of these.
    """
    probes = [
        datetime.date(year, month, 15)
        for year in range(2000, 2028)
        for month in range(1, 13)
    ]
    meanings = defaultdict(set)
    for language in LANGUAGES:
        for writing in _writings(language):
            for date in probes:
                meanings[writing.write(date)].add(date)

    return {
        month: {
            language: [
                writing
                for writing in _writings(language)
                if all(
                    len(meanings[writing.write(date)]) == 1
                    for date in probes
                    if date.month == month
                )
            ]
            for language in LANGUAGES
        }
        for month in range(1, 13)
    }


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
