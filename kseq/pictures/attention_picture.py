"""Attention weights as a picture with the tokens on its axes."""

from matplotlib.figure import Figure

from kseq.pictures.fonts import fonts_for
from kseq.pictures.png import as_png, boxes_for_missing_letters

_SPACE = "\u2581"  # in a piece
_LOWER_BLOCK = "\ufdd0"  # in a piece, what is a U+2581 in the text


@boxes_for_missing_letters()
def attention_picture(weights, source_tokens, target_tokens):
    """Draws one alignment matrix.

    Args:
        weights: (T, S) float, each row a distribution over the source.
        source_tokens: S strings, for the columns.
        target_tokens: T strings, for the rows.

    Returns:
        A PNG image, bytes.

    Reference:
        Bahdanau et al. 2015, arXiv:1409.0473, figure 3.
    """
    sources = [_readable(token) for token in source_tokens]
    targets = [_readable(token) for token in target_tokens]
    with fonts_for(sources + targets):
        return as_png(_figure(weights, sources, targets))


def _figure(weights, sources, targets):
    rows, columns = len(targets), len(sources)
    figure = Figure(
        figsize=(2.3 + 0.3 * columns, 1.8 + 0.3 * rows), layout="constrained"
    )
    axes = figure.add_subplot()
    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    # A token may hold a dollar, which would begin a formula.
    axes.set_xticks(range(columns), sources, rotation=90, parse_math=False)
    axes.set_yticks(range(rows), targets, parse_math=False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="source", ylabel="answer")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure


def _readable(token):
    """A piece as it is written; a space alone is visible."""
    text = token.replace(_SPACE, " ").replace(_LOWER_BLOCK, _SPACE)
    return text if text.strip() else "\u2423" * len(text)
