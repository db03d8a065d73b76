"""Folders of pictures and of recordings."""

import os
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from kseq.data.data_error import DataError

LARGEST_FILE = 2**28  # bytes of a file


class MediaFolder:
    """The encoded pictures or recordings of a folder, by their names.

    Args:
        path: of the folder.
        read: function, path -> bytes, which checks them, such as
            `read_picture`.
        kind: str, what the files are, for messages.

    Call arguments:
        name: str, of a file in the folder.

    Returns:
        Its bytes.

    Raises:
        DataError: there is no such folder, or no such file.

    Example:
    >>> MediaFolder("no-such-folder", read_picture, "picture")
    Traceback (most recent call last):
    kseq.data.data_error.DataError: no-such-folder is not a folder of pictures.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        read: Callable[[Path], bytes],
        kind: str,
    ):
        self.path = Path(path)
        self.read = read
        self.kind = kind
        self._lines = {}
        if not os.fspath(path) or not self.path.is_dir():
            raise DataError(f"{path} is not a folder of {kind}s.")

    def __call__(self, name: str) -> bytes:
        try:
            return self.read(self.path / name)
        except DataError as error:
            line = self._lines.get(name)
            raise DataError(
                f"{line}: {error}" if line else str(error)
            ) from None

    def check(self, lines):
        """Raises DataError unless there is a file of each name.

        Args:
            lines: dict, name -> the line that names it, also for messages
                about what is wrong inside of a file.
        """
        self._lines |= lines
        for name, line in lines.items():
            try:
                is_file = (self.path / name).is_file()
            except (OSError, ValueError):  # too long, or NUL
                is_file = False
            if not is_file:
                raise DataError(
                    f"{line}: expected the name of a {self.kind} in "
                    f"{self.path}; found {name!r:.100}."
                )


def read_picture(path: str | os.PathLike) -> bytes:
    """The bytes of a JPEG or PNG file, which is decoded to check it.

    Raises:
        DataError: it cannot be read, or decoded.
    """
    image = read_file(path)
    try:
        tf.io.decode_image(image, channels=3, expand_animations=False)
    except tf.errors.InvalidArgumentError:
        raise DataError(f"{path} is not a readable JPEG or PNG file.") from None
    return image


def read_file(path: str | os.PathLike) -> bytes:
    """The bytes of a file of at most 256 MiB.

    Raises:
        DataError: it cannot be read.
    """
    try:
        path = Path(path)
        if not path.is_file():  # a pipe would be waited for
            raise DataError(f"{path} is not a file.")
        if path.stat().st_size > LARGEST_FILE:
            raise DataError(f"{path} is larger than 256 MiB.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise DataError(f"Cannot read {path}: {reason}.") from None
