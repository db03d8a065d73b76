"""Attention to the turns of a dialogue, and to their words, as a picture."""

import numpy as np

from kseq.pictures.attention_picture import visible
from kseq.pictures.fonts import fonts_for
from kseq.pictures.piece_texts import readable, turn_ends
from kseq.pictures.png import as_png, boxes_for_missing_letters

_GAP = 2  # columns between the two


@boxes_for_missing_letters()
def turn_attention_picture(weights, source_tokens, target_tokens):
    """Draws the weights of turns beside those of their words.

    Args:
        weights: (T, S) float, each row a distribution over the words.
        source_tokens: S pieces, for the columns; END is the last of a turn.
        target_tokens: T pieces, for the rows.

    Returns:
        A PNG image, bytes.

    Reference:
        Xing et al. 2018, arXiv:1701.07149, figure 3.
    """
    weights, sources, targets = readable(weights, source_tokens, target_tokens)
    ends = turn_ends(sources)
    starts = [0, *ends[:-1]]
    turns = np.add.reduceat(weights, starts, axis=1)
    sources = [visible(token) for token in sources]
    targets = [visible(token) for token in targets]
    with fonts_for(sources + targets):
        return as_png(_figure(turns, weights, ends, sources, targets))


def _figure(turns, weights, ends, sources, targets):
    from matplotlib.figure import Figure  # not above: a page needs none

    rows, columns = weights.shape
    widths = [turns.shape[1], columns]
    figure = Figure(
        figsize=(2.6 + 0.3 * (sum(widths) + _GAP), 1.8 + 0.3 * rows),
        layout="constrained",
    )
    left, right = figure.subplots(1, 2, width_ratios=widths, sharey=True)
    names = [f"turn {number}" for number in range(1, widths[0] + 1)]
    for axes, values, labels in (
        (left, turns, names),
        (right, weights, sources),
    ):
        image = axes.imshow(values, cmap="Greys", vmin=0, vmax=1, aspect="auto")
        # A token may hold a dollar, which would begin a formula.
        axes.set_xticks(
            range(len(labels)), labels, rotation=90, parse_math=False
        )
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
    for end in ends[:-1]:
        right.axvline(end - 0.5, color="0.6", linewidth=1)
    left.set_yticks(range(rows), targets, parse_math=False)
    left.set(xlabel="turns", ylabel="answer")
    right.set(xlabel="words")
    figure.colorbar(image, ax=right, label="attention weight", shrink=0.8)
    return figure
