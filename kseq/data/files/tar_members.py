"""The members of WebDataset's tar archives: media and their texts."""

import hashlib
import os
import posixpath
import re
import tarfile
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from kseq.data.files.compressed_files import open_uncompressed, unreadable
from kseq.data.files.data_error import DataError
from kseq.data.files.records import as_text
from kseq.data.files.tables import decoded
from kseq.data.files.text_files import (
    BYTE_ORDER_MARK,
    LONGEST_LINE,
    matching_files,
    refuse_utf_16,
)
from kseq.files.json_files import json_object
from kseq.terminal import escaped_line

_BLOCK = 512  # bytes, of which headers and the end of an archive are made
_LONGEST_HEADER = 2**16  # bytes of a long name, or of the keywords of pax
_LARGEST_JSON = 2**20  # bytes
_TEXTS = ("txt", "json", "cls")  # the first that has a text
_TAR = re.compile(r"\.tar$", re.IGNORECASE)
_COMPRESSED = re.compile(
    r"\.(tar\.(gz|bz2|xz|zst|lz4)|tgz|tbz2?|txz|tzst)$", re.IGNORECASE
)
_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_BROKEN = (  # raised for what is not an archive
    *(tarfile.TarError, OSError, EOFError, ValueError, OverflowError),
    *(MemoryError, IndexError, RecursionError),
)


class TarMember(NamedTuple):
    """A recording or a picture in an archive, and its position."""

    path: str
    name: str
    offset: int
    size: int

    def __str__(self):
        return f"{escaped_line(self.path)}: {self.name}"

    @property
    def place(self) -> str:
        """Where it is, for messages that have its name."""
        return escaped_line(self.path)

    def read(self) -> bytes:
        """Its bytes.

        Raises:
            DataError: it cannot be read.
        """
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                content = file.read(self.size)
        except OSError as error:
            raise unreadable(self.path, error) from None
        if len(content) < self.size:
            raise DataError(f"{self} is truncated.")
        return content


def is_tar(path: str | os.PathLike) -> bool:
    """Whether the end of a path or a pattern says that it names archives.

    Raises:
        DataError: it says that they are compressed.
    """
    path = os.fspath(path)
    if _COMPRESSED.search(path):
        raise DataError(
            f"{path} is compressed and cannot be read at random. "
            "Decompress it to a .tar file."
        )
    return bool(_TAR.search(path))


def are_tars(
    train: str | os.PathLike, validation: str | os.PathLike | None, **options
) -> bool:
    """Whether data are in archives, and not in tables, which `options` are for.

    Raises:
        DataError: some are and others are not, or an option is given for
            archives.
    """
    patterns = [train, validation] if validation else [train]
    found = {is_tar(path) for each in patterns for path in matching_files(each)}
    if len(found) > 1:
        raise DataError(
            "Some files are .tar archives and others are tables; expected "
            "only .tar archives, or none."
        )
    given = [name for name, value in options.items() if value]
    if given and found == {True}:
        raise DataError(
            f"{given[0]} is for tables; {train} contains the "
            f"files themselves. Leave out {given[0]}."
        )
    return found == {True}


def tar_rows(
    path: str, known, counts: Counter | None = None
) -> Iterator[tuple[TarMember, bytes, bytes]]:
    """The examples of an archive: (member, its name, text).

    Members that have the same name without its extension are an example: a
    recording or a picture, and a text in a `.txt`, at a key of a `.json`, or in
    a `.cls`. Several texts in a JSON array are several rows. All else is
    ignored, as are links and members whose names start with a dot.

    Archives often number their members alike. A name therefore starts with a
    hash of the headers and texts, which is the same wherever the archive is.

    Extensions and keys are those of `Columns`. What is left out is counted:
    `too_long`, `without_text`, `without_media`; so is what is `invalid` UTF-8.

    Raises:
        DataError: it is no archive, is truncated, compressed or damaged, or
            two of its members have the same role in an example.
    """
    counts = Counter() if counts is None else counts
    rows, digest = [], hashlib.sha256()
    with open_uncompressed(path) as file:
        for roles in _examples(path, file, known, digest).values():
            if "media" not in roles:
                counts["without_media"] += 1
                continue
            if not rows:
                member = roles["media"]
                file.seek(member.offset + member.size // 2)
                digest.update(file.read(min(member.size, _BLOCK)))
            for text in _texts(roles, known.texts, counts):
                digest.update(text)
                rows.append((roles["media"], text))
    folder = digest.hexdigest()[:8]
    for member, text in rows:
        yield member, os.fsencode(f"{folder}/{member.name}"), text


def first_extension(path: str, known: Collection[str]) -> str:
    """The extension of the first member of an archive that has a known one.

    It is in lower case, or "" if there is none.

    Raises:
        DataError: it is no archive, or is damaged before that member.
    """
    with open_uncompressed(path) as file:
        found = (_split(info.name)[1] for info in _members(path, file))
        return next((each for each in found if each in known), "")


def _examples(path, file, known, digest) -> dict[str, dict[str, TarMember]]:
    """Stem -> {"media", "txt", "json" or "cls": member}."""
    found = {}
    for info in _members(path, file):
        stem, extension = _split(info.name)
        role = "media" if extension in known.extensions else extension
        if role not in ("media", *_TEXTS):
            continue
        digest.update(os.fsencode(f"{info.name}\0{info.size}\0{info.mtime}\0"))
        roles = found.setdefault(stem, {})
        member = TarMember(path, info.name, info.offset_data, info.size)
        if role in roles:
            raise DataError(
                f"{member} and {roles[role].name} are in the same archive; "
                f"expected one {known.name if role == 'media' else role} for "
                "each name without its extension."
            )
        roles[role] = member
    return found


def _split(name):
    """A stem and a lower-case extension, "" for a hidden file."""
    stem, extension = posixpath.splitext(name.removeprefix("./"))
    is_hidden = posixpath.basename(stem).startswith(".")
    return stem, "" if is_hidden else extension[1:].lower()


def _texts(roles, keys, counts) -> list[bytes]:
    """The texts of an example; all but one are of a JSON array."""
    for role in _TEXTS:
        member = roles.get(role)
        if member is None:
            continue
        if member.size > (_LARGEST_JSON if role == "json" else LONGEST_LINE):
            counts["too_long"] += 1
            return []
        content = member.read()
        refuse_utf_16(str(member), content.split(b"\n", 1)[0])
        content = content.removeprefix(BYTE_ORDER_MARK)
        texts = [content]
        if role == "json":
            texts = _of_json(member, *decoded([content], counts), keys)
        if texts:
            return texts
    counts["without_text"] += 1
    return []


def _of_json(member, content, keys) -> list[bytes]:
    record = json_object(content)
    if record is None:
        raise DataError(f"{member}: expected a JSON object.")
    key = next((key for key in keys if record.get(key) is not None), None)
    if key is None:
        return []
    texts = record[key] if isinstance(record[key], list) else [record[key]]
    texts = list(map(as_text, texts))
    if None in texts:
        raise DataError(f"{member}: expected a string at {key!r}.")
    return [text.encode() for text in texts]


def _members(path, file) -> Iterator[tarfile.TarInfo]:
    """The headers of regular files whose content is in the archive."""
    size = os.fstat(file.fileno()).st_size
    try:
        with tarfile.open(
            fileobj=file,
            mode="r:",
            tarinfo=_Header,
            encoding="utf-8",
            errors="surrogateescape",
        ) as tar:
            end = 0
            while (info := tar.next()) is not None:
                tar.members.clear()  # would hold all headers in memory
                is_file = info.isreg() and not info.issparse()
                is_inside = 0 <= info.size <= size - info.offset_data
                if (is_file and not is_inside) or tar.offset <= end:
                    raise EOFError
                end = tar.offset
                if is_file and "\0" not in info.name:
                    yield info
            # TarFile takes a damaged header for the end.
            file.seek(tar.offset)
            if file.read(_BLOCK) != bytes(_BLOCK):
                raise EOFError
    except _BROKEN:
        raise DataError(
            f"{path} is not an uncompressed tar archive, or is "
            "truncated or damaged."
        ) from None


class _Header(tarfile.TarInfo):
    """A header whose size is possible: TarFile reads what it says at once."""

    @classmethod
    def frombuf(cls, buf, encoding, errors):
        found = super().frombuf(buf, encoding, errors)
        is_header = found.type in _HEADERS and found.size > _LONGEST_HEADER
        if found.size < 0 or is_header:
            raise tarfile.HeaderError
        return found
