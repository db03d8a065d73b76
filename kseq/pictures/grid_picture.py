"""A picture with the attention of each word laid over it."""

import io
import math

import numpy as np

from kseq.pictures.figures import figure_to_png, font_fallback, new_figure
from kseq.pictures.piece_texts import readable_attention

_COLUMNS = 6
_MOST = 48  # words that are drawn


def grid_picture(weights, cells, target_tokens, picture=None):
    """Draws a picture for each token, lighter where it is attended to.

    Args:
        weights: (T, S) float.
        cells: S strings, "row,column" of each cell, from 1.
        target_tokens: T pieces.
        picture: encoded picture, bytes, PNG or JPEG; None for the grid alone.

    Returns:
        A PNG image, bytes.

    Reference:
        Xu et al. 2015, arXiv:1502.03044, figure 3.
    """
    rows, columns = grid_shape(cells)
    weights, _, tokens = readable_attention(weights, cells, target_tokens)
    tokens = [token.strip() or "\u2423" for token in tokens[:_MOST]]
    grids = np.reshape(weights, (-1, rows, columns))[:_MOST]
    pixels = decoded_picture(picture)
    with font_fallback(tokens):
        return figure_to_png(_figure(grids, tokens, pixels))


def grid_shape(cells):
    """Rows and columns of a grid, from the names of its cells.

    Times in seconds are the columns of one row.
    """
    row, _, column = (cells or ["1,1"])[-1].partition(",")
    return (int(row), int(column)) if column else (1, len(cells))


def image_format(picture):
    """The format of an encoded picture: "png" or "jpeg"."""
    return "png" if picture.startswith(b"\x89PNG") else "jpeg"


def _figure(grids, tokens, pixels):
    columns = min(_COLUMNS, max(len(tokens), 1))
    rows = max(math.ceil(len(tokens) / columns), 1)
    figure = new_figure(1.6 * columns, 1.8 * rows)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in panels:
        panel.set_axis_off()
    for panel, grid, token in zip(panels, grids, tokens, strict=False):
        _draw(panel, grid, pixels)
        # A token may contain a dollar sign, which would begin a formula.
        panel.set_title(token, fontsize=10, parse_math=False)
    return figure


def _draw(panel, grid, pixels):
    shape = grid.shape if pixels is None else pixels.shape[:2]
    extent = (0, shape[1], shape[0], 0)
    if pixels is not None:
        panel.imshow(pixels, extent=extent)
    panel.imshow(
        grid,
        cmap="gray",
        vmin=0,
        vmax=max(float(grid.max()), 1e-6),
        alpha=None if pixels is None else 0.65,
        extent=extent,
        interpolation="nearest",
    )


def decoded_picture(picture):
    """Pixels of encoded bytes, upright; None if there are none."""
    if not picture:
        return None
    import matplotlib.image
    from PIL import Image, ImageOps  # which matplotlib needs

    file = io.BytesIO(picture)
    if image_format(picture) == "png":
        return matplotlib.image.imread(file, format="png")
    with Image.open(file) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
