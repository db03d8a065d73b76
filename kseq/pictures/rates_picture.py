"""The loss of a range test as a picture."""

from kseq.pictures.figures import figure_to_png, new_figure


def rates_picture(rates, losses, smoothed, marked):
    """Draws the loss over the learning rate, on a logarithmic axis.

    Args:
        rates: list of float.
        losses: list of float, one of each rate.
        smoothed: list of float, the same as a smooth curve.
        marked: dict, label -> rate, of vertical lines.

    Returns:
        A PNG image, bytes.
    """
    figure = new_figure(7, 4)
    axes = figure.add_subplot()
    axes.plot(rates, losses, color="#c4c4c4", label="loss of a step")
    axes.plot(rates, smoothed, color="#2f6fb0", label="smoothed")
    for (label, rate), color in zip(
        marked.items(), ("#3c8d40", "#e08a1e"), strict=False
    ):
        axes.axvline(rate, color=color, linestyle="--", label=label)
    # What diverges would leave no room for what falls.
    least, most = (
        min(smoothed),
        max(smoothed[: smoothed.index(min(smoothed)) + 1]),
    )
    margin = 0.2 * (most - least) or 1.0
    axes.set(
        xscale="log",
        ylim=(least - margin, most + margin),
        xlabel="learning rate",
        ylabel="loss",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure_to_png(figure)
