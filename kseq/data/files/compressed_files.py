"""Files that may be compressed, which the ends of their names say."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from kseq.data.files.data_error import DataError, ReadError

_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_BLOCK = 2**13  # bytes, of which a few can be hundreds of megabytes of text


def compression_of(path: str | os.PathLike) -> str:
    """How a file is compressed: ".gz", ".bz2", ".xz", ".zst", or ""."""
    end = os.path.splitext(path)[1].lower()
    return end if end in _COMPRESSIONS else ""


def uncompressed_name(path: str | os.PathLike) -> str:
    """A path without the end that says how the file is compressed."""
    path = os.fspath(path)
    return path[: len(path) - len(compression_of(path))]


@contextlib.contextmanager
def open_uncompressed(path: str) -> Iterator[BinaryIO]:
    """Opens a file to read its content as bytes.

    Raises:
        DataError: the file cannot be read, is truncated or damaged; also while
            it is read.
    """
    compression = compression_of(path)
    incomplete = f"{path} is not a complete {compression} file."
    try:
        with _opened(path, compression) as file:
            yield file
    except (EOFError, zlib.error, lzma.LZMAError):
        raise DataError(incomplete) from None
    except OSError as error:
        if error.errno is None:  # gzip and bz2, of what is not compressed
            raise DataError(incomplete) from None
        raise unreadable(path, error) from None


def unreadable(path: str | os.PathLike, error: OSError) -> ReadError:
    """The error for a file that the operating system does not read."""
    return ReadError(f"Cannot read {path}: {error.strerror}.")


def _opened(path, compression):
    match compression:
        case ".gz":
            return gzip.open(path)
        case ".bz2":
            return bz2.open(path)
        case ".xz":
            return lzma.open(path)
        case ".zst":
            return io.BufferedReader(_ZstdFile(path), buffer_size=2**17)
    return open(path, "rb")


class _ZstdFile(io.RawIOBase):
    """The content of a .zst, all of its frames.

    `zstandard.open` reads the first frame alone, and takes a truncated file
    for a complete one.
    """

    def __init__(self, path):
        try:
            import zstandard
        except ModuleNotFoundError:
            raise DataError(
                f"{path}: .zst needs the extra zstd of kseq: "
                "pip install zstandard"
            ) from None
        # Files of `zstd --long=31`, too.
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=2**31)
        self._error = zstandard.ZstdError
        self._file = io.FileIO(path)
        self._frame = None
        self._compressed = b""
        self._content = memoryview(b"")

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._content:
            compressed = self._compressed or self._file.read(_BLOCK)
            if not compressed and self._frame is None:
                return 0
            self._decompress(compressed)
        count = min(len(buffer), len(self._content))
        buffer[:count] = self._content[:count]
        self._content = self._content[count:]
        return count

    def _decompress(self, compressed):
        if not compressed:
            raise EOFError
        self._frame = self._frame or self._decompressor.decompressobj()
        try:
            self._content = memoryview(self._frame.decompress(compressed))
        except self._error:
            raise EOFError from None
        self._compressed = self._frame.unused_data
        if self._frame.eof:
            self._frame = None

    def close(self):
        if not self.closed:
            self._file.close()
        super().close()
