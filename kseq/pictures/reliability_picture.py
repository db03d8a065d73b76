"""A reliability diagram: how often answers are right, by their probability."""

import numpy as np

from kseq.pictures.figures import figure_to_png, new_figure


def reliability_picture(counts, confidences, accuracies):
    """Draws the accuracy of each bin over its mean probability.

    Calibrated probabilities are on the diagonal. The area of a point is
    proportional to the number of answers.

    Args:
        counts: (M,) int, answers in each bin of probabilities.
        confidences: (M,) float, their mean probability.
        accuracies: (M,) float, the fraction of them that is right.

    Returns:
        A PNG image, bytes.

    Reference:
        Niculescu-Mizil and Caruana 2005, "Predicting good probabilities with
        supervised learning".
    """
    figure = new_figure(4.5, 4.5)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
    used = np.asarray(counts) > 0
    x, y = np.asarray(confidences)[used], np.asarray(accuracies)[used]
    axes.plot(x, y, color="black", linewidth=1)
    shares = np.asarray(counts)[used] / max(np.sum(counts), 1)
    axes.scatter(x, y, s=10 + 500 * shares, color="black", alpha=0.5)
    axes.set(
        xlabel="probability of the answer",
        ylabel="share that is right",
        xlim=(-0.05, 1.05),
        ylim=(-0.05, 1.05),
        aspect="equal",
    )
    return figure_to_png(figure)
