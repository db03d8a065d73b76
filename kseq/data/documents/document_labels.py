"""Rules for the labels of documents."""

import shlex
import unicodedata

from kseq.data.files.blank_text import is_blank
from kseq.data.files.data_error import DataError
from kseq.data.files.tables import beginning, broken
from kseq.data.files.text_files import Line

DEFAULT_COLUMNS = ("label", "text")
LONGEST_LABEL = 100  # characters


def check_label(line: Line, label: str, columns: tuple[str, str]):
    """Raises DataError for an invalid label, without showing a text."""
    if is_blank(label):
        raise DataError(f"{line}: the label is blank.")
    if len(label) > LONGEST_LABEL:
        raise broken(
            line,
            f"a label of at most {LONGEST_LABEL} characters in column "
            f"{columns[0]!r}",
            found=f"{len(label)}. {swapped(columns)}",
        )
    if not all(map(_is_in_a_line, label)):
        raise broken(
            line,
            "a label without newlines, tabs and control characters",
            found=beginning(label),
        )


def _is_in_a_line(character) -> bool:
    return unicodedata.category(character) not in ("Cc", "Zl", "Zp")


def swapped(columns) -> str:
    """A hint for a label column that contains texts."""
    without_names = ""
    if tuple(columns) == DEFAULT_COLUMNS:
        without_names = ", or --columns 2 1 where no row names them"
    return (
        "If label and text are swapped, use --columns "
        f"{shlex.join(reversed(columns))}{without_names}"
    )
