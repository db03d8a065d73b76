"""Figures as PNG images, with letters of any script."""

import contextlib
import io
import warnings


@contextlib.contextmanager
def ignore_missing_glyphs():
    """Letters that no installed font has become boxes, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s)Glyph .* missing from font")
        yield


def new_figure(width, height):
    """An empty figure, sizes in inches."""
    from matplotlib.figure import Figure  # not above: a page needs none

    return Figure(figsize=(width, height), layout="constrained")


@ignore_missing_glyphs()
def figure_to_png(figure):
    """Draws a figure; gives its PNG image, bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    # The layout may put labels of axes with square cells out of the figure.
    square = any(axes.get_aspect() != "auto" for axes in figure.axes)
    bounds = "tight" if square else None
    file = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(file, bbox_inches=bounds)
    return file.getvalue()


_DEFAULT = "DejaVu Sans"  # matplotlib brings it
# The first two have boxes for all letters; of the third, letters are symbols.
_USELESS = ("Last Resort", ".", "cm")

_families = {}  # letter -> the font that has it, or None


@contextlib.contextmanager
def font_fallback(texts):
    """Letters that the default font does not have are drawn with others.

    Args:
        texts: strings that are drawn within the context.
    """
    import matplotlib

    letters = {letter for text in texts for letter in text}
    _find(letters - _families.keys())
    others = sorted({_families[letter] for letter in letters} - {None})
    families = [_DEFAULT, *(name for name in others if name != _DEFAULT)]
    with matplotlib.rc_context({"font.family": families}):
        yield


def _find(letters):
    from matplotlib import font_manager

    fonts = sorted(
        font_manager.fontManager.ttflist,
        key=lambda font: (font.name != _DEFAULT, font.style != "normal"),
    )
    seen = set()
    for font in fonts:
        if not letters:
            break
        if font.name in seen or font.name.startswith(_USELESS):
            continue
        seen.add(font.name)
        found = letters & _letters_of(font)
        _families.update(dict.fromkeys(found, font.name))
        letters = letters - found
    _families.update(dict.fromkeys(letters))


def _letters_of(font):
    from matplotlib.ft2font import FT2Font

    try:
        return set(map(chr, FT2Font(font.fname).get_charmap()))
    except (OSError, RuntimeError):  # a font that matplotlib cannot draw
        return set()
