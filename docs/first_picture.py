"""Draws docs/attention.png from the model of `make demo`.

python docs/first_picture.py saved_models/dates
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

import kseq

TEXTS = (
    "Sunday, September 1, 1940",
    "domingo, 1 de setembro de 1940",
    "1940. szeptember 1., vasárnap",
)
COLOURS = {"year": "#2f6fb0", "month": "#e08a1e", "day": "#3c8d40"}
WIDTH = 0.0256  # of a character, in parts of a panel


def main(path):
    figure = Figure(figsize=(11, 2.5), layout="constrained")
    for axes, found in zip(
        figure.subplots(1, len(TEXTS)),
        kseq.load(path).attention(list(TEXTS)),
        strict=True,
    ):
        draw(axes, found)
    figure.savefig(Path(__file__).with_name("attention.png"), dpi=110)


def draw(axes, attention):
    """One text above, its date below, and between them the attention."""
    words, source = grouped(attention.source_tokens, mark="▁")
    parts, target = grouped(attention.target_tokens, mark="-")
    weights = np.array(
        [
            [
                attention.weights[rows][:, columns].sum(axis=1).mean()
                for columns in source
            ]
            for rows in target
        ]
    )
    above, below = spans(words, " "), spans(parts, "-")
    for part, row, low, colour in zip(
        parts, weights, below, COLOURS.values(), strict=True
    ):
        for weight, high in zip(row, above, strict=True):
            corners = [(low[0], 0.19), (low[1], 0.19)]
            corners += [(high[1], 0.81), (high[0], 0.81)]
            axes.add_patch(Polygon(corners, color=colour, alpha=0.55 * weight))
        write(axes, low, 0.08, part, color=colour, weight="bold")
    for number, low in enumerate(below[1:]):
        write(axes, (below[number][1], low[0]), 0.08, "-", color="#555555")
    for word, high in zip(words, above, strict=True):
        write(axes, high, 0.92, word, color="#222222")
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))


def grouped(tokens, mark):
    """Words, which begin at a mark, and for each the numbers of its tokens."""
    groups = [[]]
    for number, token in enumerate(tokens):
        if token == "</s>":
            break
        if token.startswith(mark):
            groups.append([])
        if token != "-":
            groups[-1].append(number)
    groups = [group for group in groups if group]
    return [
        "".join(tokens[number] for number in group).strip("▁-")
        for group in groups
    ], groups


def spans(words, separator):
    """The left and right end of each word, centred in a panel."""
    total = len(separator.join(words)) * WIDTH
    left, found = 0.5 - total / 2, []
    for word in words:
        right = left + len(word) * WIDTH
        found.append((left, right))
        left = right + WIDTH
    return found


def write(axes, span, height, text, **style):
    axes.text(
        sum(span) / 2,
        height,
        text,
        family="monospace",
        fontsize=11,
        ha="center",
        va="center",
        **style,
    )


if __name__ == "__main__":
    main(sys.argv[1])
