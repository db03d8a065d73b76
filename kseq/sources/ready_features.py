"""Features in an .npz file, which the lines of a command name."""

import math
import os

from kseq.data import DataError
from kseq.sources.numbered_lines import numbered_lines
from kseq.user_error import UserError


def stored_features(read, what, model, options):
    """The features of `--features`, which must fit the model.

    `read` is `kseq.data.read_features` or `read_frames`, `what` the plural of
    what has the features.
    """
    if not options.features:
        raise UserError(
            f"{model.path} takes features of {what}, which the input names: "
            "give their .npz file with --features."
        )
    return read(options.features, model.preprocessor)


def named_features(stored, path):
    """A function of lines with names, which gives their stored features."""
    import numpy as np

    places = {name: place for place, name in enumerate(stored.names)}

    def read(line):
        place = places.get(os.fsdecode(line))
        if place is None:
            raise DataError(
                f"expected a name in {path}, such as {stored.names[0]!r:.100}; "
                f"found {os.fsdecode(line)!r:.100}."
            )
        return stored[place]

    return numbered_lines(read, np.full_like(stored[0], math.nan))
