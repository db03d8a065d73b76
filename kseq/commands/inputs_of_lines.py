"""Inputs of a model for the lines of an input."""

import functools
import json
import math
import os
import sys

import numpy as np

from kseq.data import DataError, read_features, read_frames
from kseq.data.algorithms.as_vectors import as_vectors
from kseq.data.files.media_folder import read_picture
from kseq.data.files.text_files import LONGEST_LINE
from kseq.data.speech.recordings import read_recording
from kseq.one_line import escaped_line
from kseq.serving.object_config import preprocessor_from_config
from kseq.user_error import UserError


class InputsOfLines:
    """Inputs of a model for the lines of an input.

    A model of text is given the lines; one of dialogues the turns in a line,
    which are separated by tabs; one of encoded pictures or of audio the files
    that the lines name; one of ready features those that the lines name; one
    of vectors the JSON arrays in the lines. A blank line has a blank answer.

    Args:
        able: `Abilities` of the model.
        options: of the command; `features` is the path of an .npz file, or
            None; `resample` whether recordings are.

    Call arguments:
        lines: list of bytes.

    Returns:
        list of bytes, of lists of bytes or of arrays.

    Raises:
        UserError: if the option is missing or of no use, or a line names
            nothing that can be read.
    """

    def __init__(self, able, options):
        check_features(able, options)
        self.source = able.source
        self._path = options.features
        self._number = 0
        self._notes = []  # about the file of the line
        if self.source in _FILES:
            self._read_file = _FILES[self.source](able, options, self._notes)
        elif self.source == "vectors":
            config = able.description.get("preprocessor")
            preprocessor = preprocessor_from_config(config)
            self._num_features = preprocessor.num_features
        elif self.source in READY:
            self._stored = stored_features(able, options)
            self._places = {
                name: place for place, name in enumerate(self._stored.names)
            }

    def __call__(self, lines):
        if self.source in ("text", "prompt"):
            return lines
        if self.source == "turns":
            return [line.split(b"\t") for line in lines]
        read = self._file if self.source in _FILES else self._features
        read = self._vectors if self.source == "vectors" else read
        return [read(line.strip()) for line in lines]

    def _vectors(self, line):
        self._number += 1
        if len(line) > LONGEST_LINE:
            raise UserError(
                f"line {self._number}: expected at most {LONGEST_LINE} bytes; "
                "found more."
            )
        try:
            sequence = json.loads(line) if line else []
        except (ValueError, RecursionError):
            raise UserError(
                f"line {self._number}: expected a JSON array of arrays of "
                f"numbers; found {os.fsdecode(line)!r:.100}."
            ) from None
        try:
            return as_vectors(sequence, self._num_features)
        except DataError as error:
            raise UserError(f"line {self._number}: {error}") from None

    def _file(self, line):
        self._number += 1
        if not line:
            return line
        try:
            content = self._read_file(os.fsdecode(line))
        except DataError as error:
            raise UserError(f"line {self._number}: {error}") from None
        while self._notes:
            note = escaped_line(self._notes.pop())
            print(f"line {self._number}: {note}", file=sys.stderr)
        return content

    def _features(self, line):
        self._number += 1
        if not line:
            return np.full_like(self._stored[0], math.nan)  # which is blank
        place = self._places.get(os.fsdecode(line))
        if place is None:
            raise UserError(
                f"line {self._number}: expected a name in "
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
    if able.source in READY and not options.features:
        raise UserError(
            f"{able.path} takes features of {READY[able.source]}: give their "
            ".npz file with --features, and their names on standard input."
        )
    if able.source not in READY and options.features:
        raise UserError(
            f"--features is for a model that takes features; {able.path} takes "
            f"{_GIVEN[able.source]}."
        )
    if are_resampled(options) and able.source != "audio":
        raise UserError(
            f"--resample is for a model of recordings; {able.path} takes "
            f"{_GIVEN.get(able.source, 'features')}."
        )


def are_resampled(options):
    """Whether recordings are; not every command has the option."""
    return getattr(options, "resample", False)


def stored_features(able, options):
    """The features of `--features`, which must fit the model."""
    preprocessor = preprocessor_from_config(
        able.description.get("preprocessor")
    )
    read = read_frames if able.source == "frames" else read_features
    return read(options.features, preprocessor)


def sample_rate(able):
    """Samples a second of what a model of audio answers to."""
    config = able.description.get("preprocessor")
    return preprocessor_from_config(config).sample_rate


def max_turns(able):
    """Maximum number of turns that a model of dialogues reads."""
    config = able.description.get("preprocessor")
    return preprocessor_from_config(config, None).max_turns


def _recordings(able, options, notes):
    return functools.partial(
        read_recording,
        sample_rate=sample_rate(able),
        resample=are_resampled(options),
        sounds=True,
        notes=notes,
    )


# The source of a model, see `Abilities`: whose features it takes; how a file
# that it takes is read; and what it takes instead of features, in words.
READY = {"features": "pictures", "frames": "recordings"}
_FILES = {"image": lambda *_: read_picture, "audio": _recordings}
_GIVEN = {
    "text": "text",
    "prompt": "prompts",
    "turns": "the turns of dialogues",
    "image": "paths of pictures",
    "audio": "paths of recordings",
    "vectors": "sequences of vectors",
}
