"""A folder of pictures."""

import os
from pathlib import Path

import tensorflow as tf

from kseq.data.data_error import DataError

_LARGEST = 2**28  # bytes of a picture


class PictureFolder:
    """The encoded pictures of a folder, by their names.

    Args:
        path: of the folder.

    Call arguments:
        name: str, of a JPEG or PNG file in the folder.

    Returns:
        Its bytes.

    Raises:
        DataError: there is no such folder, or no such picture.

    Example:
    >>> PictureFolder("no-such-folder")
    Traceback (most recent call last):
    kseq.data.data_error.DataError: no-such-folder is not a folder of pictures.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if not os.fspath(path) or not self.path.is_dir():
            raise DataError(f"{path} is not a folder of pictures.")

    def __call__(self, name: str) -> bytes:
        return read_picture(self.path / name)

    def check(self, lines):
        """Raises DataError unless there is a file of each name.

        Args:
            lines: dict, name -> the line that names it.
        """
        for name, line in lines.items():
            try:
                is_file = (self.path / name).is_file()
            except (OSError, ValueError):  # too long, or NUL
                is_file = False
            if not is_file:
                raise DataError(
                    f"{line}: expected the name of a picture in {self.path}; "
                    f"found {name!r:.100}."
                )


def read_picture(path: str | os.PathLike) -> bytes:
    """The bytes of a JPEG or PNG file, which is decoded to check it.

    Raises:
        DataError: it cannot be read, or decoded.
    """
    try:
        path = Path(path)
        if not path.is_file():  # a pipe would be waited for
            raise DataError(f"{path} is not a file.")
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path} is larger than 256 MiB.")
        image = path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or "it is no path"
        raise DataError(f"Cannot read {path}: {reason}.") from None
    try:
        tf.io.decode_image(image, channels=3, expand_animations=False)
    except tf.errors.InvalidArgumentError:
        raise DataError(
            f"{path} is no JPEG or PNG file that can be read."
        ) from None
    return image
