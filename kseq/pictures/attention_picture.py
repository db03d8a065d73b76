"""Attention weights as a picture with the tokens on its axes."""

from kseq.pictures.figures import figure_to_png, font_fallback, new_figure
from kseq.pictures.piece_texts import readable_attention


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
    weights, sources, targets = visible_attention(
        weights, source_tokens, target_tokens
    )
    with font_fallback(sources + targets):
        return figure_to_png(_figure(weights, sources, targets))


def _figure(weights, sources, targets):
    rows, columns = len(targets), len(sources)
    figure = new_figure(2.3 + 0.3 * columns, 1.8 + 0.3 * rows)
    axes = figure.add_subplot()
    if weights.size:  # a blank text has an answer without tokens
        image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1)
        figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    # A token may hold a dollar, which would begin a formula.
    axes.set_xticks(range(columns), sources, rotation=90, parse_math=False)
    axes.set_yticks(range(rows), targets, parse_math=False)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="source", ylabel="answer")
    return figure


def visible_attention(weights, source_tokens, target_tokens):
    """See `readable_attention`; tokens of spaces alone are signs for them."""
    weights, *sides = readable_attention(weights, source_tokens, target_tokens)
    return weights, *(
        [token if token.strip() else "\u2423" * len(token) for token in tokens]
        for tokens in sides
    )
