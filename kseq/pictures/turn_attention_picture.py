"""Attention to the words of a dialogue and to its turns, as a picture."""

from kseq.pictures.attention_picture import visible_attention
from kseq.pictures.figures import figure_to_png, font_fallback, new_figure
from kseq.pictures.piece_texts import turn_ends

_GAP = 0.4  # between turns; a word has the height 1


def turn_attention_picture(weights, source_tokens, target_tokens):
    """Draws the weights of words and, beside them, those of whole turns.

    The words are rows, because a dialogue has many more words than its answer.
    There is a gap between turns.

    Args:
        weights: (T, S) float, each row a distribution over the words.
        source_tokens: S pieces, for the rows; END is the last of a turn.
        target_tokens: T pieces, for the columns.

    Returns:
        A PNG image, bytes.

    Reference:
        Xing et al. 2018, arXiv:1701.07149.
    """
    weights, sources, targets = visible_attention(
        weights, source_tokens, target_tokens
    )
    with font_fallback(sources + targets):
        return figure_to_png(_figure(weights, sources, targets))


def _figure(weights, sources, targets):
    ends = turn_ends(sources)
    height = len(sources) + _GAP * len(ends)
    figure = new_figure(4 + 0.5 * len(targets), 1.8 + 0.2 * height)
    words, turns = figure.subplots(1, 2)
    places, middles = [], []
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        top = start + _GAP * number
        bottom = top + end - start
        part = weights[:, start:end].T
        _draw(words, part, top, bottom)
        _draw(turns, part.sum(axis=0, keepdims=True), top, bottom)
        places += [top + 0.5 + row for row in range(end - start)]
        middles.append((top + bottom) / 2)

    # A token may contain a dollar sign, which would begin a formula.
    words.set_yticks(places, sources, parse_math=False)
    names = [f"turn {number}" for number in range(1, len(ends) + 1)]
    turns.set_yticks(middles, names)
    turns.yaxis.tick_right()
    for axes in (words, turns):
        axes.set_xticks(
            range(len(targets)), targets, rotation=90, parse_math=False
        )
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.spines[:].set_visible(False)
        axes.set(ylim=(height + _GAP, 0), xlabel="answer")
    if turns.images:
        style = {"label": "attention weight", "shrink": 0.8, "aspect": 30}
        figure.colorbar(turns.images[0], ax=[words, turns], **style)
    return figure


def _draw(axes, weights, top, bottom):
    """The weights of one turn, (rows, T), in a frame."""
    from matplotlib.patches import Rectangle

    _, count = weights.shape
    if not count:
        return
    axes.imshow(
        weights,
        cmap="Greys",
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, count - 0.5, bottom, top),
    )
    frame = Rectangle(
        (-0.5, top), count, bottom - top, fill=False, edgecolor="0.75"
    )
    axes.add_patch(frame)
