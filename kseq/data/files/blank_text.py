"""Blank texts, defined in the same way in Python and in a graph."""

import re

# White space of all scripts, and characters without width, such as U+200B and
# the byte order mark. Written out, because Python and RE2 use different
# versions of Unicode.
_INVISIBLE = (
    "\t\n\v\f\r\x1c-\x1f \x85\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f"
    "\u205f-\u2064\u2066-\u206f\u3000\ufeff"
)
BLANK = f"^[{_INVISIBLE}]+$"  # for Python and for `tf.strings`

_BLANK = re.compile(f"[{_INVISIBLE}]*")
_BLANK_LINE = re.compile(f"\n[{_INVISIBLE}]*\n")


def is_blank(text: str | bytes) -> bool:
    r"""Whether a text has no visible characters.

    >>> is_blank(" \u3000\u200b\n"), is_blank(b"a")
    (True, False)
    """
    if isinstance(text, bytes):
        text = text.strip()
        if not text or b"!" <= text[:1] <= b"~":  # most lines
            return not text
        text = text.decode(errors="replace")
    return _BLANK.fullmatch(text) is not None


def has_blank_line(text: str) -> bool:
    r"""Whether one of the lines of a text is blank.

    >>> has_blank_line("a\n\u3000\nb"), has_blank_line("a\nb")
    (True, False)
    """
    return _BLANK_LINE.search(f"\n{text}\n") is not None
