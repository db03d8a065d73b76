"""Attention weights as a picture with the tokens on its axes."""

from matplotlib.figure import Figure

from kseq.pictures.piece_texts import readable
from kseq.pictures.png import as_png, boxes_for_missing_letters


@boxes_for_missing_letters()
def attention_picture(weights, source_tokens, target_tokens):
    """Draws one alignment matrix.

    Args:
        weights: (T, S) float, each row a distribution over the source.
        source_tokens: S pieces, for the columns.
        target_tokens: T pieces, for the rows.

    Returns:
        A PNG image, bytes.

    Reference:
        Bahdanau et al. 2015, arXiv:1409.0473, figure 3.
    """
    weights, source_tokens, target_tokens = readable(
        weights, source_tokens, target_tokens
    )
    rows, columns = len(target_tokens), len(source_tokens)
    figure = Figure(
        figsize=(2 + 0.3 * columns, 1.5 + 0.3 * rows), layout="constrained"
    )
    axes = figure.add_subplot()
    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    # A token may hold a dollar, which would begin a formula.
    axes.set_xticks(
        range(columns), source_tokens, rotation=90, parse_math=False
    )
    axes.set_yticks(range(rows), target_tokens, parse_math=False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="source token", ylabel="target token")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return as_png(figure)
