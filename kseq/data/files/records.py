"""Records: the objects of JSON, and the rows of Parquet and Arrow."""

import contextlib
import io
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from kseq.data.files.arrow_records import arrow_records
from kseq.data.files.blank_text import is_blank
from kseq.data.files.tables import beginning, broken, decoded, kind_of
from kseq.data.files.text_files import Line, read_lines
from kseq.files.json_files import json_object

_LARGEST_ITEM = 2**26  # characters of an item of an array
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[][{}]')
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_SURROGATE = re.compile("[\ud800-\udfff]")


def has_records(path) -> bool:
    """Whether the name of a file says that its rows are records."""
    return kind_of(path) in ("json", "parquet", "arrow")


def read_records(
    path: str, keys: Sequence[str] = (), counts: Counter | None = None
) -> Iterator[tuple[Line, dict | None]]:
    """The records of a file; None for a blank line.

    A JSON file has an object in each line, or is one array of objects. The
    line of a record of Parquet or Arrow has the number of its row. Without
    `keys`, which are those of `value_at`, all values are read. What is
    `invalid`, not UTF-8, is counted.

    Raises:
        DataError: a line or an item is not a record.
    """
    counts = Counter() if counts is None else counts
    kind = kind_of(path)
    if kind in ("parquet", "arrow"):
        return arrow_records(path, kind, keys)
    return _json_records(read_lines(path), counts)


def value_at(record: dict, key: str):
    """The value at a key, or at the keys between dots.

    Raises:
        KeyError: there is none.

    Example:
    >>> value_at({"translation": {"de": "Los."}}, "translation.de")
    'Los.'
    >>> value_at({"a.b": 1, "a": {"b": 2}}, "a.b")
    1
    """
    if key in record:
        return record[key]
    for place in reversed(range(len(key))):
        inner = record.get(key[:place]) if key[place] == "." else None
        if isinstance(inner, dict):
            with contextlib.suppress(KeyError):
                return value_at(inner, key[place + 1 :])
    raise KeyError(key)


def has_keys(record: dict, keys: Sequence[str]) -> bool:
    """Whether `value_at` finds a value at each key."""
    try:
        for key in keys:
            value_at(record, key)
    except KeyError:
        return False
    return True


def shown_record(line: Line, record: dict) -> str:
    """The text of a record, or its keys if it has none, for a message."""
    return beginning(line.text) if line.text else listed_keys(record)


def listed_keys(record: dict) -> str:
    """The keys of a record and of its nested objects, for a message."""
    keys = []
    for key, value in list(record.items())[:8]:
        inner = list(value) if isinstance(value, dict) else []
        keys += [f"{key}.{name}" for name in inner[:8]] or [key]
    return ", ".join(map(beginning, keys[:8])) or "no keys"


def as_text(value) -> str | None:
    """A string without surrogates, or a number as text: 4 and 4.0 are "4".

    It is None for all else, such as NaN.

    Example:
    >>> list(map(as_text, ("a", 4, 4.0, 4.5, True, None)))
    ['a', '4', '4', '4.5', 'true', None]
    """
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        if value.is_integer() and abs(value) < 2**53:
            value = int(value)
    return json.dumps(value) if isinstance(value, int | float) else None


def without_surrogates(text: str) -> str:
    """Replaces unpaired surrogates, which JSON can contain."""
    return _SURROGATE.sub("\ufffd", text)


def _json_records(lines, counts):
    texts = ((line, *decoded([line.text], counts)) for line in lines)
    is_first = True
    for line, text in texts:
        if is_first and text.lstrip().startswith("["):
            yield from _items(itertools.chain([(line, text)], texts))
            return
        is_first = is_first and is_blank(text)
        yield line, None if is_blank(text) else _object(line, text)


def _object(line, content):
    record = json_object(content)
    if record is None:
        raise _no_object(line, content)
    return record


def _items(lines):
    """The objects of an array, one by one. Strings contain no line breaks."""
    depth, number, start = 0, 0, None
    text = io.StringIO()  # of the object, or of what is between two
    for line, content in lines:
        place = 0
        for token in _TOKENS.finditer(content):
            step = _STEPS.get(token[0], 0)
            depth += step
            opens = (depth, step) in ((2, 1), (0, -1))
            closes = (depth, step) == (1, -1)
            if (depth, step) == (1, 1):  # the array itself
                place = token.end()
            if opens:
                text.write(content[place : token.start()])
                expected = "," if number and depth else ""
                if text.getvalue().strip() != expected:
                    raise _no_object(line, text.getvalue().strip())
                start, place, text = line, token.start(), io.StringIO()
            if closes:
                text.write(content[place : token.end()])
                found = text.getvalue()
                start = start._replace(text=found.encode(errors="replace"))
                yield start, _object(start, found)
                number += 1
                start, place, text = None, token.end(), io.StringIO()
            if not depth:
                _check_end(line, content[token.end() :], lines, number)
                return
        text.write(content[place:] + "\n")
        if text.tell() > _LARGEST_ITEM:
            break
    if not number:
        raise _no_object(start or line, text.getvalue())
    raise broken(
        start or line,
        "the rest of a JSON array, to its `]`",
        found=f"none after {number} objects",
    )


def _check_end(line, rest, lines, number):
    if not number:
        raise _no_object(line, "[]")
    for found, text in itertools.chain([(line, rest)], lines):
        if text.strip():
            raise broken(found, "nothing after `]`", found=beginning(text))


def _no_object(line, found):
    return broken(line, "a JSON object, one per line", found=beginning(found))
