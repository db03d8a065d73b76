"""The built-in corpus: dates as people write them, and as ISO 8601 does."""

import datetime
import functools
import itertools
import random
import re
from collections import defaultdict
from collections.abc import Callable

from kseq.data.built_in.split_range import split_range

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
# Months written as numbers are left out, unless they are marked as months.
_MONTH_IS_NAMED = re.compile("[ML]{3}|M月")


# One way to write a date.
_Writing = Callable[[datetime.date], str]


def dates(
    split: str, size: int | None = None, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Dates of 1900 to 2099 in 41 languages, and the same in ISO 8601.

    Every date occurs once, in one split, and no string is another date in
    another language.

    Args:
        split: "train", "validation" or "test".
        size: number of pairs, at most and by default `SIZES[split]`.
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
    size = len(split_range(split, size, SIZES))
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
        sources.append(writing(date))
        targets.append(date.isoformat())
    return sources, targets


@functools.cache
def _writings_of_month() -> dict[int, dict[str, list[_Writing]]]:
    """For every month, the ways to write it in each language.

    A string that is two dates contains one year and one day of the month,
    and names that mean different months in different languages. 28 years
    contain every possible calendar, so one day of each of their months shows
    all such strings.
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
                meanings[writing(date)].add(date)

    return {
        month: {
            language: [
                writing
                for writing in _writings(language)
                if all(
                    len(meanings[writing(date)]) == 1
                    for date in probes
                    if date.month == month
                )
            ]
            for language in LANGUAGES
        }
        for month in range(1, 13)
    }


def _writings(language) -> list[_Writing]:
    import babel.dates  # slow, and needed for these dates alone

    locale = babel.Locale.parse(language)
    patterns = [locale.date_formats[style].pattern for style in _STYLES]
    patterns += [
        locale.datetime_skeletons[skeleton].pattern
        for skeleton in _SKELETONS
        if skeleton in locale.datetime_skeletons
    ]
    return [
        functools.partial(
            babel.dates.parse_pattern(pattern).apply, locale=locale
        )
        for pattern in dict.fromkeys(patterns)
        if _MONTH_IS_NAMED.search(pattern)
    ]
