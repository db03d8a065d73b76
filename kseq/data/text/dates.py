"""The built-in corpus: dates as people write them, and as ISO 8601 does."""

import datetime
import functools
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable
from importlib import resources

from kseq.data.files.split_range import split_range

SIZES = {"train": 40_000, "validation": 1_000, "test": 1_000}

_DAYS = range(
    datetime.date(1900, 1, 1).toordinal(),
    datetime.date(2100, 1, 1).toordinal(),
)

# One way to write a date.
_Writing = Callable[[datetime.date], str]


def dates(
    split: str, size: int | None = None, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Dates of 1900 to 2099 in 41 languages, and the same in ISO 8601.

    Every date occurs once, in one split, and no string is a different date in
    another language. A month is a word, or a number marked as a month.

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

    Reference:
        Unicode CLDR 47, as in Babel 2.18: its patterns and names are in
        `date_words.json`.
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
        writing = draw.choice(writings[draw.choice([*writings])])
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
    for language in _words():
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
            for language in _words()
        }
        for month in range(1, 13)
    }


def _writings(language) -> list[_Writing]:
    words = _words()[language]
    return [
        functools.partial(_written, pattern, words)
        for pattern in words["patterns"]
    ]


def _written(pattern, words, date):
    months, weekdays = words["months"], words["weekdays"]
    return pattern.format(
        year=date.year,
        month_number=date.month,
        day=date.day,
        **{name: names[date.month - 1] for name, names in months.items()},
        **{name: names[date.weekday()] for name, names in weekdays.items()},
    )


@functools.cache
def _words():
    """{language: {"patterns", and "months" and "weekdays", their names}}."""
    path = resources.files("kseq.data.text") / "date_words.json"
    return json.loads(path.read_text("utf-8"))
