"""Folders of pictures and of recordings."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from kseq.data.data_error import DataError
from kseq.data.wav_samples import wav_samples

_LARGEST = 2**28  # bytes of a file


class MediaFolder:
    """The encoded pictures or recordings of a folder, by their names.

    Args:
        path: of the folder.
        read: function, path -> bytes, which checks them: `read_picture` or
            `read_recording`.
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
        if not os.fspath(path) or not self.path.is_dir():
            raise DataError(f"{path} is not a folder of {kind}s.")

    def __call__(self, name: str) -> bytes:
        return self.read(self.path / name)

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
                    f"{line}: expected the name of a {self.kind} in "
                    f"{self.path}; found {name!r:.100}."
                )


def read_picture(path: str | os.PathLike) -> bytes:
    """The bytes of a JPEG or PNG file, which is decoded to check it.

    Raises:
        DataError: it cannot be read, or decoded.
    """
    image = _read(path)
    try:
        tf.io.decode_image(image, channels=3, expand_animations=False)
    except tf.errors.InvalidArgumentError:
        raise DataError(f"{path} is not a readable JPEG or PNG file.") from None
    return image


def read_recording(
    path: str | os.PathLike, sample_rate: int | None = None
) -> bytes:
    """The bytes of a WAV file, which is decoded to check it.

    It may be silent.

    Args:
        path: of the file.
        sample_rate: int, samples per second that it must have; None for any.

    Raises:
        DataError: it cannot be read or decoded, or has a different sample rate.
    """
    audio = _read(path)
    rate = int(_rates()(tf.constant([audio]))[0])
    if not rate:
        raise DataError(f"{path} is not a readable 16-bit PCM WAV file.")
    if sample_rate is not None and rate != sample_rate:
        raise DataError(
            f"{path} has {rate} samples per second; expected {sample_rate}."
        )
    return audio


@functools.cache
def _rates():
    """A function of WAV files (B,), their sample rates; 0 if they are none."""
    return tf.function(
        lambda audio: wav_samples(audio)[1],
        input_signature=[tf.TensorSpec((None,), tf.string)],
        autograph=False,
    )


def _read(path):
    try:
        path = Path(path)
        if not path.is_file():  # a pipe would be waited for
            raise DataError(f"{path} is not a file.")
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path} is larger than 256 MiB.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise DataError(f"Cannot read {path}: {reason}.") from None
