"""The built-in scenes as captions; the features of cells are their pixels."""

import numpy as np
import tensorflow as tf

from kseq.data.files.stored_features import StoredFeatures
from kseq.data.pictures.captions import Captions
from kseq.data.pictures.image_preprocessor import (
    MIDDLE,
    ImagePreprocessor,
    cells_of,
)
from kseq.data.pictures.scenes import GRID, SIDE, SIZES, scenes


def scene_captions() -> dict:
    """The splits of the built-in scenes, and their preprocessor, by name."""
    preprocessor = ImagePreprocessor(side=SIDE, rows=GRID, columns=GRID)
    drawn = [scenes(split) for split in SIZES]
    pictures = np.concatenate([part.pictures for part in drawn])
    names = [
        f"{split}-{number}.png"
        for split, part in zip(SIZES, drawn, strict=True)
        for number in range(1, 1 + len(part.pictures))
    ]
    features = (cells_of(pictures, SIDE) - MIDDLE).astype(np.int8)
    stored = StoredFeatures(names, features, preprocessor.grid)
    places = {name: place for place, name in enumerate(names)}

    def picture(name):
        return tf.io.encode_png(pictures[places[name]]).numpy()

    splits, start = {}, 0
    for split, part in zip(SIZES, drawn, strict=True):
        end = start + len(part.pictures)
        splits[split] = Captions(
            names[start:end],
            part.references,
            stored,
            list(range(start, end)),
            picture,
            part.objects,
        )
        start = end
    return {**splits, "preprocessor": preprocessor}
