"""A spectrogram, and below it the attention of each token over time."""

from kseq.pictures.figures import figure_to_png, font_fallback, new_figure
from kseq.pictures.grid_picture import decoded_picture
from kseq.pictures.piece_texts import readable_attention

_MOST = 120  # tokens that are drawn


def speech_picture(weights, times, target_tokens, picture=None):
    """Draws a spectrogram and the alignment below it.

    Args:
        weights: (T, S) float.
        times: S strings, where each position starts, in seconds.
        target_tokens: T pieces.
        picture: encoded spectrogram, bytes, PNG or JPEG; None for the
            alignment alone.

    Returns:
        A PNG image, bytes.

    Reference:
        Chan et al. 2016, arXiv:1508.01211, figure 2.
    """
    weights, _, tokens = readable_attention(weights, times, target_tokens)
    weights = weights[:_MOST]
    tokens = [token.strip() or "\u2423" for token in tokens[:_MOST]]
    pixels = decoded_picture(picture)
    with font_fallback(tokens):
        return figure_to_png(_figure(weights, times, tokens, pixels))


def _figure(weights, times, tokens, pixels):
    seconds = [float(time) for time in times] or [0.0]
    step = (seconds[-1] - seconds[0]) / max(len(seconds) - 1, 1)
    end = seconds[-1] + (step or 1.0)
    heights = (1.2, 0.4 + 0.16 * max(len(tokens), 1))
    figure = new_figure(8, 0.8 + sum(heights))
    sound, aligned = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    if pixels is None:
        sound.set_axis_off()
    else:
        sound.imshow(pixels, cmap="gray", extent=(0, end, 0, 1), aspect="auto")
        sound.set(yticks=[], ylabel="frequency")
    count = max(len(tokens), 1)
    if weights.size:
        aligned.imshow(
            weights,
            cmap="Greys",
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
            extent=(0, end, count - 0.5, -0.5),
        )
    # A token may contain a dollar sign, which would begin a formula.
    aligned.set_yticks(range(len(tokens)), tokens, parse_math=False)
    aligned.tick_params(axis="y", length=0)
    aligned.set(xlabel="seconds", ylabel="answer")
    return figure
