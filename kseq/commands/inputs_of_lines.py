"""What a model is given for the lines of an input."""

import math
import os

from kseq.data import DataError, read_features
from kseq.data.media_folder import read_picture
from kseq.serving.object_config import preprocessor_from_config
from kseq.user_error import UserError


class InputsOfLines:
    """What a model is given for the lines of an input.

    A model of text is given the lines; one of encoded pictures the files that
    the lines name; one of features those of the pictures that the lines name.
    A blank line has a blank answer.

    Args:
        able: `Abilities` of the model.
        options: of the command; `features` is the path of an .npz file, or
            None.

    Call arguments:
        lines: list of bytes.

    Returns:
        list of bytes or of arrays.

    Raises:
        UserError: if the option is missing or of no use, or a line names
            nothing that can be read.
    """

    def __init__(self, able, options):
        check_features(able, options)
        self.source = able.source
        self._path = options.features
        self._number = 0
        if self.source == "features":
            self._stored = stored_features(able, options)
            self._places = {
                name: place for place, name in enumerate(self._stored.names)
            }

    def __call__(self, lines):
        if self.source == "text":
            return lines
        read = self._image if self.source == "image" else self._features
        return [read(line.strip()) for line in lines]

    def _image(self, line):
        self._number += 1
        if not line:
            return line
        try:
            return read_picture(os.fsdecode(line))
        except DataError as error:
            raise UserError(f"line {self._number}: {error}") from None

    def _features(self, line):
        self._number += 1
        grid = self._stored.preprocessor
        if not line:
            # What is not finite is blank.
            return [[math.nan] * grid.num_features] * grid.num_cells
        place = self._places.get(os.fsdecode(line))
        if place is None:
            raise UserError(
                f"line {self._number}: expected the name of a picture in "
                f"{self._path}, such as {self._stored.names[0]!r:.100}; found "
                f"{os.fsdecode(line)!r:.100}."
            )
        return self._stored[place]


def check_features(able, options):
    """Raises UserError unless features are given where they are needed.

    Args:
        able: `Abilities` of the model.
        options: of the command.
    """
    if able.source == "features" and not options.features:
        raise UserError(
            f"{able.path} answers to features of pictures: give their .npz "
            "file with --features, and the names of pictures as lines."
        )
    if able.source != "features" and options.features:
        what = "paths of pictures" if able.source == "image" else "text"
        raise UserError(
            f"--features is for a model of features; {able.path} answers to "
            f"{what}."
        )


def stored_features(able, options):
    """The features of `--features`, which must fit the model."""
    grid = preprocessor_from_config(able.description.get("preprocessor"))
    return read_features(options.features, grid)
