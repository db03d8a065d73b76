"""Folders of text files, each of which is a document."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kseq.data.files.compressed_files import uncompressed_name, unreadable
from kseq.data.files.data_error import DataError
from kseq.data.files.tables import decoded
from kseq.data.files.text_files import check_file, read_lines


def texts_in_folder(
    folder: str | os.PathLike, counts: Counter, depth: int = 0
) -> Iterator[tuple[Path, str]]:
    """The content of each .txt file, also compressed, sorted by path.

    Files are in the folder or in folders inside it, at least `depth` deep.
    Links to folders are followed, but no folder is read twice. What begins
    with a dot is left out. Files that are `blank`, of no bytes, or `invalid`,
    not UTF-8, are counted.

    Yields:
        The path of a file inside the folder, and its text without carriage
        returns.

    Raises:
        DataError: there is no such file, or one cannot be read, or is not text.
    """
    for path in paths_in_folder(folder, depth):
        file = os.path.join(folder, path)
        check_file(file)
        if not os.path.getsize(file):
            counts["blank"] += 1
            continue
        lines = [line.text for line in read_lines(file)]
        text = b"\n".join(lines).replace(b"\r", b"").removesuffix(b"\n")
        if b"\0" in text:
            raise DataError(f"{file} is not text: it contains NUL bytes.")
        yield path, decoded([text], counts)[0]


def paths_in_folder(folder: str | os.PathLike, depth: int = 0) -> list[Path]:
    """The paths of what `texts_in_folder` reads, inside the folder."""
    paths = sorted(_paths(folder))
    paths = [path for path in paths if len(path.parts) > depth]
    if not paths:
        inside = "/FOLDER" * depth
        raise DataError(
            f"{folder} is a directory; expected text files in "
            f"it, {folder}{inside}/NAME.txt; found none."
        )
    return paths


def _paths(folder) -> Iterator[Path]:
    known = set()

    def refuse(error):
        raise unreadable(error.filename, error)

    for inner, folders, names in os.walk(
        folder, onerror=refuse, followlinks=True
    ):
        found = os.stat(inner)
        if (found.st_dev, found.st_ino) in known:
            folders.clear()
            continue
        known.add((found.st_dev, found.st_ino))
        # Which of two links to the same folder is read depends on the order.
        folders[:] = sorted(
            name for name in folders if not name.startswith(".")
        )
        for name in names:
            is_text = uncompressed_name(name).lower().endswith(".txt")
            if is_text and not name.startswith("."):
                yield Path(inner, name).relative_to(folder)
