"""Text that stays on one line, whatever it contains."""

import re

# Control characters, and what some programs take for the end of a line.
BREAKS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
# And bytes of a file name that are not UTF-8.
_ESCAPED = re.compile(f"{BREAKS.pattern}|[\ud800-\udfff]")


def one_line(text, keep=""):
    r"""Replaces control characters and line separators by spaces.

    Args:
        text: str; anything else is converted by `str`.
        keep: str, characters that are kept.

    Returns:
        str of the same length.

    Example:
        >>> one_line("fire\nand\tflood")
        'fire and flood'
    """
    return BREAKS.sub(
        lambda found: found[0] if found[0] in keep else " ", str(text)
    )


def escaped_line(text):
    r"""Escapes control characters and line separators, as `repr` does.

    Bytes of a file name that are not UTF-8, which are surrogates, are escaped
    as well.

    Example:
        >>> print(escaped_line("a\nb"))
        a\nb
    """
    return _ESCAPED.sub(lambda found: repr(found[0])[1:-1], str(text))
