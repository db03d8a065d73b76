"""The reading and writing of a neural Turing machine, as a picture."""

import numpy as np

from kseq.pictures.figures import figure_to_png, new_figure

MOST_STEPS = 300  # that are drawn


def memory_picture(
    inputs, probabilities, read_weights, write_weights, targets=None
):
    """Draws a sequence above the weightings of the heads, time to the right.

    Of a sequence of more than 300 steps the first 300 are drawn.

    Args:
        inputs: (T, F) float.
        probabilities: (T, D) float.
        read_weights: (T, H, N) float.
        write_weights: (T, H', N) float.
        targets: (T, D) float, the target bits, NaN, which is not drawn, where
            there is none; or None.

    Returns:
        A PNG image, bytes.

    Reference:
        Graves et al. 2014, arXiv:1410.5401, figures 4 and 6.
    """
    if targets is not None:
        probabilities = np.where(np.isnan(targets), np.nan, probabilities)
    panels = [("inputs", inputs), ("outputs", probabilities)]
    if targets is not None:
        panels.insert(1, ("targets", targets))
    panels = [
        (name, np.asarray(values)[:MOST_STEPS].T) for name, values in panels
    ]
    for name, weights in (("write", write_weights), ("read", read_weights)):
        weights = np.asarray(weights)[:MOST_STEPS]
        heads = weights.shape[1]
        for head in range(heads):
            label = f"{name} {head + 1}" if heads > 1 else name
            panels.append((label, weights[:, head].T))
    return figure_to_png(_figure(panels))


def _figure(panels):
    heights = [max(0.5, 0.1 * min(len(rows), 24)) for _, rows in panels]
    steps = max(1, panels[0][1].shape[1])
    width = min(10.0, max(4.0, 1.2 + 0.09 * steps))
    figure = new_figure(width, 0.6 + sum(heights))
    axes = figure.subplots(
        len(panels), 1, sharex=True, squeeze=False, height_ratios=heights
    )
    for (name, rows), axis in zip(panels, axes[:, 0], strict=True):
        if rows.size:
            axis.imshow(
                _in_view(name, rows),
                cmap="Greys",
                vmin=min(0.0, float(np.nanmin(rows, initial=0.0))),
                vmax=1,
                aspect="auto",
                interpolation="nearest",
            )
        axis.set(yticks=[])
        axis.set_ylabel(name, rotation=0, ha="right", va="center")
    axes[-1, 0].set_xlabel("step")
    return figure


def _in_view(name, rows):
    """The slots that a head used; most of the memory may be unused."""
    if not name.startswith(("read", "write")):
        return rows
    used = np.flatnonzero(rows.max(axis=1) > 0.1)
    if not used.size:
        return rows
    first, last = max(used[0] - 2, 0), used[-1] + 3
    return rows[first:last]
