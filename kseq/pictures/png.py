"""Figures as PNG images, whatever letters they hold."""

import contextlib
import io
import warnings


def as_png(figure):
    """Draws a figure; gives its PNG image, bytes."""
    # Not above: a page needs no matplotlib.
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    return file.getvalue()


@contextlib.contextmanager
def boxes_for_missing_letters():
    """Letters that no installed font has are boxes, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s)Glyph .* missing from font")
        yield
