"""Text that stays on one line, whatever it holds."""

import re

# Control characters, and what some programs take for the end of a line.
_BREAKS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text, keep=""):
    r"""Replaces control characters and line separators by spaces.

    Args:
        text: str, or what `str` makes one of.
        keep: str, characters that are kept.

    Returns:
        str of the same length.

    Example:
        >>> one_line("fire\nand\tflood")
        'fire and flood'
    """
    return _BREAKS.sub(
        lambda found: found[0] if found[0] in keep else " ", str(text)
    )
