"""A confusion matrix as a picture with the classes on its axes."""

import numpy as np

from kseq.pictures.figures import figure_to_png, font_fallback, new_figure
from kseq.terminal import single_line

_SIDE = 14  # inches, at most, of the matrix
_MOST_COUNTED = 50  # classes
_LONGEST_NAME = 24  # characters
_POINTS = 72  # an inch


def confusion_picture(confusion, classes):
    """Draws the counts, each shaded by its share of the row.

    The row of a class that is always recognized has a black cell on the
    diagonal and white cells elsewhere, however rare the class is. With more
    than 50 classes, or if counts do not fit into their cells, only the shades
    are drawn.

    Args:
        confusion: (C, C) int, a row for each true class and a column for
            each predicted one.
        classes: C strings.

    Returns:
        A PNG image, bytes.
    """
    with font_fallback(classes):
        return figure_to_png(_figure(np.asarray(confusion), classes))


def _figure(confusion, classes):
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    size = len(classes)
    longest = len(f"{confusion.max():,}")
    cell = min(max(0.5, 0.1 + 0.1 * longest), _SIDE / size)
    side = cell * size
    figure = new_figure(side + 3, side + 2)
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Greys", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.8)

    # With very many classes, only every k-th is named.
    places = range(0, size, -(-size // 80))
    names = [_short(classes[place]) for place in places]
    # A name may contain a dollar sign, which would begin a formula.
    axes.set_xticks(places, names, rotation=90, parse_math=False)
    axes.set_yticks(places, names, parse_math=False)
    axes.tick_params(length=0)
    axes.set(xlabel="predicted", ylabel="true")

    # A digit is about 0.6 times as wide as the font size.
    letters = min(10, 0.9 * cell * _POINTS / (0.6 * longest))
    if letters >= 5 and size <= _MOST_COUNTED:
        for (row, column), count in np.ndenumerate(confusion):
            axes.text(
                column,
                row,
                f"{count:,}",
                size=letters,
                color="white" if shares[row, column] > 0.6 else "black",
                ha="center",
                va="center",
            )

    return figure


def _short(name):
    name = single_line(name)
    if len(name) <= _LONGEST_NAME:
        return name
    return name[: _LONGEST_NAME - 1] + "…"
