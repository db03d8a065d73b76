"""The built-in corpus of pictures: drawn scenes and their descriptions."""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kseq.data.files.split_range import different_examples, split_range
from kseq.data.files.stored_features import StoredFeatures
from kseq.data.pictures.captions import Captions
from kseq.data.pictures.image_preprocessor import (
    MIDDLE,
    ImagePreprocessor,
    cells_of,
)

SIZES = {"train": 8_000, "validation": 500, "test": 1_000}
GRID = 4  # cells on a side
SIDE = 12  # pixels on the side of a cell

_COLOURS = {
    "red": (214, 40, 40),
    "green": (46, 160, 67),
    "blue": (40, 84, 214),
    "yellow": (240, 200, 30),
    "purple": (140, 60, 180),
    "white": (250, 250, 250),
}
_SHAPES = ("circle", "cross", "ring", "square", "triangle")
_BACKGROUND, _NOISE = 110, 12
_CENTRE = np.arange(SIDE) - (SIDE - 1) / 2


class Scenes(NamedTuple):
    """Drawn pictures.

    Args:
        pictures: (N, 48, 48, 3) uint8.
        references: list of lists of str, all correct descriptions of each.
        objects: list of dicts, the words of an object, such as "red circle"
            -> the number of the cell that it is in, row by row from 0.
    """

    pictures: np.ndarray
    references: list[list[str]]
    objects: list[dict[str, int]]


def scenes(split: str, size: int | None = None, seed: int = 0) -> Scenes:
    r"""Scenes of four or five objects and their descriptions.

    Each object is in a cell of its own of a grid of 4 x 4 cells of 12 pixels;
    its size and position in the cell vary. All colours of a scene differ. A
    description names two objects and how the first is placed in relation to the
    second: by the direction in which they are farther apart. It may name any
    two objects, unless both directions are equal. No two scenes have the same
    objects in the same cells.

    Args:
        split: "train", "validation" or "test".
        size: number of scenes, at most and by default `SIZES[split]`.
        seed: of all that is drawn.

    Returns:
        Scenes.

    Example:
    >>> found = scenes("train", size=1, seed=4)
    >>> found.objects[0]
    {'blue square': 4, 'red triangle': 1, 'yellow ring': 14, 'green circle': 0}
    >>> print(*found.references[0][:2], sep="\n")
    a blue square below a green circle
    a green circle above a blue square
    """
    places = split_range(split, size, SIZES)
    objects = different_examples(
        places, seed, _objects, key=lambda it: frozenset(it.items())
    )
    draw = np.random.default_rng([seed, places.start])
    return Scenes(
        np.stack([_picture(draw, found) for found in objects]),
        [_descriptions(found) for found in objects],
        objects,
    )


def _objects(draw):
    """The words of the objects of a scene that can be described -> cells."""
    while True:
        colours = draw.sample(list(_COLOURS), draw.choice((4, 5)))
        cells = draw.sample(range(GRID**2), len(colours))
        names = [f"{colour} {draw.choice(_SHAPES)}" for colour in colours]
        found = dict(zip(names, cells, strict=True))
        if _descriptions(found):
            return found


def _relation(cell, other):
    """The direction from another cell to a cell; None if two are equal."""
    (row, column), (other_row, other_column) = _place(cell), _place(other)
    down, right = row - other_row, column - other_column
    if abs(down) == abs(right):
        return None
    if abs(right) > abs(down):
        return "right of" if right > 0 else "left of"
    return "below" if down > 0 else "above"


def _place(cell):
    return divmod(cell, GRID)


def _descriptions(found):
    return sorted(
        f"a {name} {relation} a {other}"
        for name, other in itertools.permutations(found, 2)
        if (relation := _relation(found[name], found[other]))
    )


def _picture(draw, found):
    size = GRID * SIDE
    picture = draw.normal(_BACKGROUND, _NOISE, (size, size, 3))
    for name, cell in found.items():
        colour, shape = name.split()
        row, column = _place(cell)
        part = np.s_[
            row * SIDE : (row + 1) * SIDE, column * SIDE : (column + 1) * SIDE
        ]
        mask = _mask(draw, shape)[:, :, None]
        shade = np.array(_COLOURS[colour]) * draw.uniform(0.85, 1)
        picture[part] += mask * (shade - picture[part])
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)


def _mask(draw, shape):
    """The pixels of an object in its cell, (SIDE, SIDE) bool."""
    radius = draw.uniform(4, 5.5)
    y, x = np.meshgrid(_CENTRE, _CENTRE, indexing="ij")
    free = SIDE / 2 - radius
    y, x = y - draw.uniform(-free, free), x - draw.uniform(-free, free)
    distance = np.hypot(x, y)
    largest = np.maximum(abs(x), abs(y))
    masks = {
        "circle": distance <= radius,
        "ring": (distance <= radius) & (distance >= radius - 2),
        "square": largest <= radius * 0.9,
        "cross": (np.minimum(abs(x), abs(y)) <= 1) & (largest <= radius),
        "triangle": (abs(y) <= radius) & (2 * abs(x) <= y + radius),
    }
    return masks[shape]


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
    features = (cells_of(pictures, SIDE).numpy() - MIDDLE).astype(np.int8)
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
