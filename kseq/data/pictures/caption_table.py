"""Tables of pictures and their captions."""

from kseq.data.files.data_error import DataError
from kseq.data.files.media_folder import read_picture
from kseq.data.files.named_texts import (
    left_out_texts,
    lines_of_names,
    read_named_texts,
    refuse_missing,
)
from kseq.data.files.tar_media import Media, open_media
from kseq.data.files.tar_members import TarMember, are_tars
from kseq.data.pictures.captions import Captions


class CaptionTable:
    """A table of captions."""

    def __init__(self, path, columns, plain):
        self.path = path
        found = read_named_texts(path, columns, plain)
        self.captions, self.lines, left_out = found
        self.problems = left_out_texts(path, left_out)

    def of(self, stored, folder) -> Captions:
        """Its captions of pictures, all of which have features."""
        numbers = {name: number for number, name in enumerate(stored.names)}
        refuse_missing(self.lines, numbers, "picture")
        return Captions(
            list(self.captions),
            list(self.captions.values()),
            stored,
            [numbers[name] for name in self.captions],
            folder,
        )


def read_caption_tables(
    train, validation, columns=(), plain=False, features="", images=""
) -> list[CaptionTable]:
    """The tables of training, and of validation if there is one.

    Raises:
        DataError: a table is broken; or neither pictures nor features are
            given, or they are although `train` contains the pictures.
    """
    given = {"columns": columns, "features": features, "images": images}
    has_pictures = are_tars(train, validation, **given)
    if not has_pictures and not features and not images:
        raise DataError(
            "train needs pictures: give their folder with --images, or their "
            "features, an .npz file, with --features."
        )
    paths = [train] if validation is None else [train, validation]
    return [CaptionTable(path, columns, plain) for path in paths]


def pictures_of(tables, images) -> Media | None:
    """The pictures of all tables, each of which is there, or None."""
    lines = lines_of_names(tables)
    if isinstance(next(iter(lines.values())), TarMember):
        images = None
    elif not images:
        return None
    return open_media(images, read_picture, "picture", lines)


def picture_names(tables) -> list[str]:
    """The different names in all tables, sorted."""
    return sorted({name for table in tables for name in table.captions})
