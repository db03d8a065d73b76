"""Paths for TensorFlow, which takes some of them for patterns."""

import contextlib
import re
import tempfile
from pathlib import Path

from kseq.user_error import UserError

# It looks for a checkpoint, also that in a SavedModel, as for a pattern.
_PATTERN = re.compile(r"[][*?\\]")


@contextlib.contextmanager
def literal_path(directory):
    r"""A path under which TensorFlow finds the files of a directory.

    That is the path itself, unless TensorFlow would take it for a pattern,
    because of a `[`, `]`, `*`, `?` or `\` in it, or for no text, because of
    bytes that are not UTF-8. It is then that of a symbolic link, which is
    deleted on leaving.

    Args:
        directory: str or path of a directory.

    Yields:
        `pathlib.Path`.

    Raises:
        UserError: if such a link cannot be made.

    Example:
        >>> with literal_path("runs/dates") as path:
        ...     print(path)
        runs/dates
    """
    directory = Path(directory)
    if _is_plain(directory):
        yield directory
        return
    with contextlib.ExitStack() as stack:
        try:
            folder = tempfile.gettempdir()
            folder = folder if _is_plain(folder) else "/tmp"
            made = tempfile.TemporaryDirectory(prefix="kseq-", dir=folder)
            link = Path(stack.enter_context(made), "link")
            link.symlink_to(directory.absolute())
        except OSError as error:
            raise UserError(
                f"{directory}: TensorFlow reads this path as a pattern, and a "
                "symbolic link to it cannot be created in a temporary "
                f"directory: {error.strerror}. Choose a path without [ ] * ? "
                "and \\, in UTF-8."
            ) from error
        yield link


def _is_plain(path):
    text = str(path)
    # A byte that is not UTF-8 is a surrogate.
    is_text = text.encode(errors="replace").decode() == text
    return is_text and not _PATTERN.search(text)
