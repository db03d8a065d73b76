"""What identifies files, whatever their paths."""

import hashlib
import os
from pathlib import Path

from kseq.data.files.compressed_files import compression_of, unreadable
from kseq.data.files.table_folders import is_text_folder
from kseq.data.files.tables import kind_of
from kseq.data.files.text_files import matching_files
from kseq.terminal import escaped_line, progress


def fingerprints(path: str | os.PathLike) -> list[dict]:
    """Identifies the content of a file, of all that match, or of a folder.

    Two paths have equal fingerprints if reading them gives the same data: the
    same bytes, in files of the same kind and in the same order. Of the files in
    a folder, such as pictures, names and sizes are compared instead of bytes.

    Args:
        path: of a file or a folder; a pattern names several files.

    Raises:
        DataError: there is no such file, or it cannot be read.

    Example:
    >>> _ = Path("a.txt").write_text("a rose")
    >>> fingerprints("a.txt") == fingerprints(Path("a.txt").absolute())
    True
    """
    if is_text_folder(path):
        return [_of_folder(path)]
    return [
        {
            "kind": kind_of_content(file),
            "sha256": sha256_of(file, f"Comparing {escaped_line(file)}"),
        }
        for file in matching_files(path)
    ]


def sha256_of(path: str | os.PathLike, description: str) -> str:
    """The sha256 of the content of a file; shows progress.

    Raises:
        ReadError: it cannot be read.
    """
    try:
        with progress(description), open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None


def kind_of_content(path: str | os.PathLike) -> str:
    """How a file is read, which its name determines."""
    return (kind_of(path) or "text") + compression_of(path)


def _of_folder(path):
    found = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            size = file.stat().st_size if file.is_file() else 0
            entry = f"{file.relative_to(path)}\0{size}\0"
            found.update(os.fsencode(entry))
    return {"kind": "folder", "sha256": found.hexdigest()}
