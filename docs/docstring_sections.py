"""Sections of kseq's docstrings that griffe knows by different names."""

import re
import textwrap

import griffe

_NAMES = {
    "Example:": "Examples:",
    "Call arguments:": "Other Parameters: Call arguments",
}


class DocstringSections(griffe.Extension):
    """Renames sections, and indents examples that are not."""

    def on_instance(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = sections(obj.docstring.value)


def sections(text):
    """The docstring as griffe reads it."""
    text = textwrap.dedent(text)
    text = re.sub(
        r"^Example:\n((?:(?: *(?:>>>|\.\.\.)| *\S).*\n?|\n(?=>>>))+)",
        _indented,
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^(Returns|Yields|Reference):\n((?:    .*\n?|\n)+)",
        _paragraph,
        text,
        flags=re.MULTILINE,
    )
    for name, known in _NAMES.items():
        text = re.sub(rf"^{name}$", known, text, flags=re.MULTILINE)
    return text


def _paragraph(match):
    """A heading and plain text, in which no colon ends the name of a type."""
    return f"**{match[1]}:**\n\n{textwrap.dedent(match[2])}\n"


def _indented(match):
    lines = match[1]
    if lines.startswith(">>>"):
        lines = textwrap.indent(lines, "    ")
    return f"Example:\n{lines}"
