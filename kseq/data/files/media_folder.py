"""Folders of pictures and of recordings."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from kseq.data.files.compressed_files import unreadable
from kseq.data.files.data_error import DataError
from kseq.data.files.picture_header import (
    MOST_PIXELS,
    MOST_SCANS,
    MOST_TEXTS,
    picture_header,
)

LARGEST_FILE = 2**28  # bytes of a file
_OTHERS = {
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"RIFF": "WebP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"<": "HTML, XML or SVG",
    b"%PDF": "PDF",
    b"\0\0\0\x18ftyp": "HEIC or AVIF",
    b"\0\0\0\x1cftyp": "HEIC or AVIF",
    b"\0\0\0\x20ftyp": "HEIC or AVIF",
}


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
    kseq.data.files.data_error.DataError: no-such-folder is not a folder ...
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
            return self.read(self.title(name))
        except DataError as error:
            line = self._lines.get(name)
            raise DataError(
                f"{line}: {error}" if line else str(error)
            ) from None

    def title(self, name: str) -> Path:
        """Where it is, for messages."""
        return self.path / name

    def size(self, name: str) -> int:
        """The bytes of a file that is there."""
        return self.title(name).stat().st_size

    def check(self, lines):
        """Raises DataError unless there is a file of each name.

        Args:
            lines: dict, name -> the line that names it, also for messages about
                what is wrong inside a file.
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


def read_picture(
    path: str | os.PathLike, content: bytes | None = None
) -> bytes:
    """The bytes of a JPEG or PNG file, which is decoded to check it.

    Args:
        path: of the file.
        content: its bytes if they are known; `path` is then for messages.

    Raises:
        DataError: it cannot be read, or decoded.
    """
    image = read_file(path) if content is None else content
    found = {key: int(value) for key, value in _header()(image).items()}
    what = f"{path} is not a readable JPEG or PNG file"
    _refuse_large(path, **found)
    for start, name in _OTHERS.items():
        if image.startswith(start):
            raise DataError(f"{what}, but {name}. Convert it to PNG.")
    if not image:
        raise DataError(f"{what}: it is empty.")
    try:
        if found["is_picture"]:
            tf.io.decode_jpeg(image, channels=3)  # PNG as well
            return image
    except tf.errors.InvalidArgumentError:
        pass
    is_known = image.startswith((b"\xff\xd8\xff", b"\x89PNG"))
    reason = ": it is truncated or damaged." if is_known else "."
    raise DataError(f"{what}{reason}")


def _refuse_large(path, height, width, scans, texts, **_):
    """Raises DataError if a picture takes too long or too much to decode."""
    if height > 0 and width > 0 and height * width > MOST_PIXELS:
        raise DataError(
            f"{path} has {width} x {height} pixels; expected at most "
            f"{MOST_PIXELS}. Make it smaller."
        )
    for count, most, what in (
        (scans, MOST_SCANS, "scans"),
        (texts, MOST_TEXTS, "compressed texts"),
    ):
        if count > most:
            raise DataError(
                f"{path} has more than {most} {what}, which take too long to "
                "decode. Save the picture again in a different program."
            )


@functools.cache
def _header():
    return tf.function(
        picture_header,
        input_signature=[tf.TensorSpec((), tf.string)],
        autograph=False,
    )


def read_file(path: str | os.PathLike) -> bytes:
    """The bytes of a file of at most 256 MiB.

    Raises:
        DataError: it cannot be read.
    """
    path = Path(path)
    if not path.is_file():  # opening a pipe would block
        raise DataError(f"{path} is not a file.")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise DataError(f"{path} is larger than 256 MiB.")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
