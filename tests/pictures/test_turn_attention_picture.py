"""The attention to a dialogue: its words and its turns."""

import importlib

import numpy as np
import pytest

from kseq.pictures import turn_attention_picture
from tests.pictures.pixels import pixels

module = importlib.import_module("kseq.pictures.turn_attention_picture")
SOURCES = ["▁a", "▁$1$", "</s>", "▁", "<0xC3>", "<0xBC>", "</s>"]
TARGETS = ["▁x", "</s>"]


def drawn(monkeypatch, weights, sources=SOURCES):
    """The figure: the weights of words and of turns, in two axes."""
    monkeypatch.setattr(module, "figure_to_png", lambda figure: figure)
    return turn_attention_picture(weights, sources, TARGETS)


def labels(axes):
    ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    return [tick.get_text() for tick in ticks]


def test_dark_where_the_weight_is():
    weights = np.zeros((2, 7))
    none = pixels(turn_attention_picture(weights, SOURCES, TARGETS))
    weights[0, 0] = weights[1, 3] = 1
    some = pixels(turn_attention_picture(weights, SOURCES, TARGETS))
    assert none.shape == some.shape
    assert (none - some).max() > 0.9  # white has become black


def test_words_and_turns_have_their_names(monkeypatch):
    figure = drawn(monkeypatch, np.zeros((2, 7)))
    names = {name for axes in figure.axes for name in labels(axes)}
    assert {" a", " $1$", "␣", "ü", " x", "</s>"} < names
    assert {"turn 1", "turn 2"} < names and "turn 3" not in names


def test_a_turn_has_the_sum_of_its_words(monkeypatch):
    weights = np.random.dirichlet(np.ones(7), 2)
    figure = drawn(monkeypatch, weights)
    found = sorted(
        value
        for axes in figure.axes[:2]
        for drawing in axes.images
        for value in np.ravel(drawing.get_array())
    )
    words = [*weights[:, :4].ravel(), *weights[:, 4:6].sum(1), *weights[:, 6]]
    turns = [*weights[:, :3].sum(axis=1), *weights[:, 3:].sum(axis=1)]
    np.testing.assert_allclose(found, sorted([*words, *turns]), atol=1e-6)


def test_a_long_dialogue_is_no_wider(monkeypatch):
    short = drawn(monkeypatch, np.zeros((2, 7)))
    long = drawn(monkeypatch, np.zeros((2, 70)), SOURCES * 10)
    assert long.get_figwidth() == short.get_figwidth()
    assert long.get_figheight() > 3 * short.get_figheight()


@pytest.mark.parametrize(
    ("sources", "targets"),
    [([], []), ([], ["</s>"]), (["▁a", "</s>"], []), (["日", "न"], ["$x$"])],
)
def test_extremes_are_drawn(sources, targets):
    weights = np.zeros((len(targets), len(sources)))
    png = turn_attention_picture(weights, sources, targets)
    assert png.startswith(b"\x89PNG")
