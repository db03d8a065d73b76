"""JSON files, which may have been edited or be broken."""

import json
import numbers

from kseq.files.regular_file import read_regular
from kseq.user_error import UserError

_DEEPEST = 100  # nested lists and dicts; models have about 20


def read_json(path):
    """Reads a JSON file that holds an object, as a dict.

    Raises:
        UserError: if the file cannot be read, or holds anything else.
    """
    try:
        found = json.loads(read_regular(path).decode("utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise UserError(f"{path} is broken: it is nested too deeply.") from None
    except ValueError as error:
        raise UserError(f"{path} is broken: {error}") from error
    if not isinstance(found, dict):
        raise UserError(
            f"{path} is broken: expected a JSON object. Received: {found!r:.80}"
        )
    if _is_deeper(found, _DEEPEST):
        raise UserError(f"{path} is broken: it is nested too deeply.")
    return found


def json_object(text):
    """The dict that a text or bytes are in JSON; None if they are none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def are_strings(value):
    """Whether a JSON value is a list of strings."""
    return isinstance(value, list) and all(
        isinstance(item, str) for item in value
    )


def to_json(value):
    """The text of a JSON file.

    An integer of NumPy is a number, any other value without a JSON type a
    string. It is valid UTF-8 also where a string is the name of a file in
    other bytes.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
    # A surrogate becomes its escape, which JSON reads as the same string.
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


def _plain(value):
    return int(value) if isinstance(value, numbers.Integral) else str(value)


def as_read(value):
    """What `read_json` returns for a value that `to_json` wrote."""
    return json.loads(to_json(value))


def nodes(tree):
    """All dicts and lists in a JSON value, the outer ones first."""
    level = [tree]
    while level:
        yield from level
        level = _children(level)


def _is_deeper(tree, limit):
    level = [tree]
    for _ in range(limit):
        level = _children(level)
        if not level:
            return False
    return True


def _children(level):
    return [
        child
        for node in level
        for child in (node.values() if isinstance(node, dict) else node)
        if isinstance(child, dict | list)
    ]
