"""A picture in a page, with cells that the attention of a token shades."""

import base64

from kseq.pictures.grid_picture import grid_shape, image_format

# Cells without weight are covered by a veil; the one with the largest is not.
_VEIL = 0.8
_LEVELS = 9  # of the veil
STYLE = """
.grid { position: relative; display: inline-block; max-width: 100%;
  min-width: min(20rem, 100%) }
.grid img { display: block; width: 100%; min-width: min(20rem, 100%) }
.grid .cells { position: absolute; inset: 0; display: grid }
.grid .alone { position: static; aspect-ratio: 1; background: #ffffff;
  outline: 1px solid var(--rule) }
""" + "".join(
    f".grid {{ --veil-{level}: rgb(0 0 0 / {_VEIL * level / _LEVELS:.2f}) }}\n"
    for level in range(1, _LEVELS + 1)
)


def grid_overlay(weights, cells, picture):
    """A picture under a grid of cells, as HTML.

    Args:
        weights: (T, S) float array.
        cells: S strings, "row,column" of each cell, from 1.
        picture: its encoded bytes, PNG or JPEG; b"" for the grid alone.

    Returns:
        HTML, str. The property `--tN` of a cell is its background while the
        N-th token is pointed at.
    """
    rows, columns = grid_shape(cells)
    levels = _shade_levels(weights)
    elements = "".join(
        f'<b style="{_properties(levels[:, place])}"></b>'
        for place in range(len(cells))
    )
    image = ""
    if picture:
        kind = image_format(picture)
        data = base64.b64encode(picture).decode()
        image = f'<img alt="" src="data:image/{kind};base64,{data}">'
    alone = "" if picture else " alone"
    return (
        f'<div class="grid">{image}<div class="cells{alone}" '
        f'style="grid-template: repeat({rows}, 1fr) / repeat({columns}, 1fr)">'
        f"{elements}</div></div>"
    )


def _shade_levels(weights):
    """(T, S) weights to levels of the veil, 0 for the largest of each row."""
    largest = weights.max(axis=1, keepdims=True, initial=1e-9)
    return (_LEVELS * (1 - weights / largest)).round().astype(int)


def _properties(levels):
    return ";".join(
        f"--t{number}:var(--veil-{level})"
        for number, level in enumerate(levels, start=1)
        if level
    )


def cell_name(cell):
    """The name of a cell, such as "3,4", or of a time, in words."""
    row, _, column = cell.partition(",")
    return f"row {row}, column {column}" if column else f"{row} s"
