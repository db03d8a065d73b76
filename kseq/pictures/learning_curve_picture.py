"""The losses and the scores of a training as a picture."""

import itertools
import math

from kseq.pictures.figures import figure_to_png, new_figure

# In each validation beside its scores; perplexity is drawn as the loss.
_OTHERS = ("val_loss", "val_accuracy", "val_perplexity")
_STYLES = {"training": ("#c4c4c4", "-"), "validation": ("#2f6fb0", ".-")}


def learning_curve_picture(rows):
    """Draws the losses over the steps, and beside them a score of validation.

    The score is the first one that is no loss and no accuracy of single tokens.
    If a restart has computed steps again, the last values count.

    Args:
        rows: iterable of dicts, see `kseq.files.recorded_metrics`.

    Returns:
        A PNG image, bytes; None if there is no loss.
    """
    by_step = {}
    for row in rows:
        by_step.setdefault(row["step"], {}).update(row)
    rows = [by_step[step] for step in sorted(by_step)]
    names = dict.fromkeys(itertools.chain(*rows))  # in order
    scores = [name for name in names if name.startswith("val_")]
    shown = [name for name in scores if name not in _OTHERS] or [
        name for name in scores if name == "val_accuracy"
    ]
    losses = {
        label: curve
        for name, label in (("loss", "training"), ("val_loss", "validation"))
        if (curve := _curve(rows, name))
    }
    if not losses:
        return None

    panels = [("loss", losses)]
    if shown:
        label = shown[0].removeprefix("val_").replace("_", " ")
        panels.append((label, {"validation": _curve(rows, shown[0])}))
    figure = new_figure(4.2 * len(panels), 3)
    for axes, (label, curves) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        for name, curve in curves.items():
            color, style = _STYLES[name]
            single = len(curve[0]) == 1  # a line of one point is invisible
            axes.plot(*curve, "." if single else style, color=color, label=name)
        axes.set(xlabel="steps", ylabel=label)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False)
    return figure_to_png(figure)


def _curve(rows, name):
    """Steps and finite values; nothing if there are none."""
    points = [
        (row["step"], row[name])
        for row in rows
        if isinstance(row.get(name), int | float) and math.isfinite(row[name])
    ]
    return tuple(zip(*points, strict=True))
