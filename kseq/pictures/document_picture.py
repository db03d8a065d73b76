"""A classified document as a picture, shaded by its attention weights."""

import bisect
import heapq
import itertools
import unicodedata
from typing import NamedTuple

from kseq.pictures.figures import (
    figure_to_png,
    font_fallback,
    ignore_missing_glyphs,
)

# The shade of a word by the least ratio of its share of the attention to the
# largest share in the document. Dark text is readable on each.
SHADES = {0.1: "#fff0bd", 0.25: "#fdd87c", 0.5: "#f7b344", 0.75: "#e88f2a"}
INK, MUTED = "#1d1a16", "#5f574d"

_MOST_SENTENCES = 20
_MOST_LINES = 6  # of a sentence
_LONGEST_PIECE = 36  # characters, which fit on a line however wide they are
# Arguments of FontProperties; a page needs no matplotlib.
_PLAIN, _BOLD = {"size": 11}, {"size": 13, "weight": "bold"}
_SMALL = {"size": 9}

# Pixels, _INCH of them to an inch.
_INCH = 100
_EDGE, _LINE, _GAP, _SPACE = 18, 26, 8, 5
_NUMBER_END, _WEIGHT_END = 42, 108  # columns, from the left
_BAR, _BAR_WIDTH = 118, 60
_TEXT, _TEXT_WIDTH = 196, 640
_WIDTH = _TEXT + _TEXT_WIDTH + _EDGE
_DARKEST = SHADES[max(SHADES)]


class _Piece(NamedTuple):
    """A word, or a part of one, at its position on a line."""

    text: str
    level: int
    x: float
    width: float


def shade_levels(document):
    """Each word's shade: 0 for none, n for the n-th of `SHADES`."""
    most = max((share for share, _, _ in strong_words(document)), default=0)
    bounds = list(SHADES)
    return [
        [bisect.bisect(bounds, share / (most or 1)) for share in row]
        for row in document.word_shares
    ]


def strong_words(document):
    """Candidates for the strongest words, each with its share.

    They have a letter or a digit of any script: a full stop can get much
    attention, but means nothing. If there is no such word, any text is a
    candidate.

    Args:
        document: `ExplainedDocument`.

    Returns:
        A list of (share, word, number of the sentence from 1).
    """
    sentences = zip(document.word_shares, document.words, strict=True)
    words = [
        (share, word, number)
        for number, (shares, words) in enumerate(sentences, start=1)
        for share, word in zip(shares, words, strict=True)
        if word.strip()
    ]
    return [item for item in words if any(map(str.isalnum, item[1]))] or words


@ignore_missing_glyphs()
def document_picture(document, title):
    """Draws the sentences of a document with their weights, words shaded.

    Of more than 20 sentences those 20 with the largest weights are drawn, and
    a note says so; of a very long sentence, the beginning.

    Args:
        document: `ExplainedDocument`.
        title: str.

    Returns:
        A PNG image, bytes.

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, figure 5.
    """
    words = itertools.chain(*document.words)
    with font_fallback([title, "…", *words]):
        return figure_to_png(_figure(document, title))


def _figure(document, title):
    from matplotlib.figure import Figure

    figure = Figure(dpi=_INCH)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    y = _draw_plainly(axes, title, y=_EDGE, font=_BOLD) + _GAP

    weights = document.sentence_weights
    numbers = heapq.nlargest(
        _MOST_SENTENCES, range(len(weights)), key=weights.__getitem__
    )
    levels = shade_levels(document)
    for number in sorted(numbers):
        _draw_weight(axes, number, weights, y)
        lines = _lines(document.words[number], levels[number], _PLAIN)
        y = _draw(axes, lines, _TEXT, y, _PLAIN) + _GAP

    note = "The darker a word, the larger its share of the attention."
    if document.is_empty:
        note = "The document is empty."
    elif len(numbers) < len(weights):
        note += (
            f" Only the {len(numbers)} sentences with the largest weights are "
            f"shown, of {len(weights)}."
        )
    y = _draw_plainly(axes, note, y, font=_SMALL, color=MUTED) + _EDGE
    axes.set(xlim=(0, _WIDTH), ylim=(y, 0))
    figure.set_size_inches(_WIDTH / _INCH, y / _INCH)
    return figure


def _draw_plainly(axes, text, y, font, color=INK):
    words = [f" {word}" for word in text.split()]
    lines = _lines(words, [0] * len(words), font, width=_WIDTH - 2 * _EDGE)
    return _draw(axes, lines, _EDGE, y, font, color)


def _draw_weight(axes, number, weights, y):
    """The number of a sentence, its weight, and a bar as long as it is."""
    style = {"va": "baseline", "ha": "right", "font": _PLAIN, "color": MUTED}
    base = y + 0.7 * _LINE
    axes.text(_NUMBER_END, base, f"{number + 1}", **style)
    axes.text(_WEIGHT_END, base, f"{weights[number]:.1%}", **style)
    width = _BAR_WIDTH * weights[number] / (max(weights) or 1)
    _fill(axes, _BAR, base - 9, width, 9, _DARKEST)


def _draw(axes, lines, x, y, font, color=INK):
    """Draws lines of text; returns where the next one begins."""
    for line in lines:
        base = y + 0.7 * _LINE
        for piece in line:
            _draw_shade(axes, piece, x, base)
            axes.text(
                x + piece.x,
                base,
                piece.text,
                font=font,
                color=color,
                va="baseline",
                # A dollar sign would begin a formula.
                parse_math=False,
            )
        y += _LINE
    return y


def _draw_shade(axes, piece, x, base):
    """A background and, for readers and printers without colour, a line."""
    if not piece.level:
        return
    shade = list(SHADES.values())[piece.level - 1]
    x, width = x + piece.x - 1, piece.width + 2
    _fill(axes, x, base - 15, width, 20, shade)
    _fill(axes, x, base + 5, width, piece.level, INK)


def _fill(axes, x, y, width, height, color):
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, color=color, lw=0))


def _lines(words, levels, font, width=_TEXT_WIDTH):
    """Lays words out in lines, lists of `_Piece`.

    A line breaks before a written word; within one only if it is longer than a
    line, as a whole sentence may be in a script without spaces.
    """
    lines, x = [[]], 0
    for written in _written_words(words, levels):
        widths = [_width(text, font) for text, _ in written]
        x += _SPACE if x else 0
        if x and x + sum(widths) > width:
            lines, x = [*lines, []], 0
        for (text, level), size in zip(written, widths, strict=True):
            if x + size > width:
                lines, x = [*lines, []], 0
            lines[-1].append(_Piece(text, level, x, size))
            x += size
        if len(lines) > _MOST_LINES:
            del lines[_MOST_LINES:]
            _, _, start, size = lines[-1][-1]
            lines[-1].append(_Piece("…", 0, start + size, _EDGE))
            break
    if not _is_right_to_left(words):
        return lines
    return [
        [piece._replace(x=width - piece.x - piece.width) for piece in line]
        for line in lines
    ]


def _is_right_to_left(words):
    """Whether the first letter with a direction is right-to-left."""
    letters = (unicodedata.bidirectional(c) for word in words for c in word)
    return next((d for d in letters if d in ("L", "R", "AL")), "L") != "L"


def _written_words(words, levels):
    """Yields lists of (text, level), one for the text between two spaces."""
    written = []
    for word, level in zip(words, levels, strict=True):
        text = " ".join(word.split())
        if written and (word[:1].isspace() or not text):
            yield written
            written = []
        written += [
            (text[start : start + _LONGEST_PIECE], level)
            for start in range(0, len(text), _LONGEST_PIECE)
        ]
    if written:
        yield written


def _width(text, font):
    """The advance width of a text, which includes its margins."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    font = FontProperties(**font)
    measure = RendererAgg(1, 1, _INCH).get_text_width_height_descent
    with_end, _, _ = measure(f"{text}|", font, ismath=False)
    end, _, _ = measure("|", font, ismath=False)
    return with_end - end
