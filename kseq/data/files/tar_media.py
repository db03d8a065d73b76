"""Pictures and recordings in tar archives."""

import os
from collections.abc import Callable

from kseq.data.files.data_error import DataError
from kseq.data.files.media_folder import LARGEST_FILE, MediaFolder
from kseq.data.files.tar_members import TarMember
from kseq.data.files.text_files import Line


class TarMedia:
    """The encoded pictures or recordings of tar archives, by their names.

    It is used as `MediaFolder`, also in other processes. Members are read by
    their positions, and nothing is written.

    Args:
        read: function of a title and `content`, bytes, which checks them, such
            as `read_picture`.
        members: dict, name -> its `TarMember`.

    Call arguments:
        name: str, of a member.

    Returns:
        Its bytes.

    Raises:
        DataError: it cannot be read, or is larger than 256 MiB.
    """

    path = None  # of no folder

    def __init__(
        self, read: Callable[..., bytes], members: dict[str, TarMember]
    ):
        self.read = read
        self.members = members

    def __call__(self, name: str) -> bytes:
        member = self.members[name]
        if member.size > LARGEST_FILE:
            raise DataError(f"{member} is larger than 256 MiB.")
        return self.read(str(member), content=member.read())

    def title(self, name: str) -> str:
        """Where it is, for messages."""
        return str(self.members[name])

    def size(self, name: str) -> int:
        """The bytes of a member."""
        return self.members[name].size


Media = MediaFolder | TarMedia


def open_media(
    folder: str | os.PathLike | None,
    read: Callable[..., bytes],
    kind: str,
    lines: dict[str, Line] | dict[str, TarMember],
) -> Media:
    """The files of all names, which are there.

    They are those of a `MediaFolder`, which is checked, or without a folder
    of `TarMedia`.

    Raises:
        DataError: there is no such folder, or a file is not there.
    """
    if folder is None:
        return TarMedia(read, lines)
    found = MediaFolder(folder, read, kind)
    found.check(lines)
    return found
