import importlib
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from kseq.pictures.confusion_picture import confusion_picture
from kseq.pictures.figures import ignore_missing_glyphs
from tests.pictures.pixels import pixels

module = importlib.import_module("kseq.pictures.confusion_picture")


def size_of(png):
    return pixels(png).shape[:2]


@pytest.fixture
def drawn(monkeypatch):
    """Draws the picture; gives the axes with the matrix."""

    def call(confusion, classes):
        FigureCanvasAgg(figure := confusion_picture(confusion, classes)).draw()
        return figure.axes[0]

    monkeypatch.setattr(module, "figure_to_png", lambda figure: figure)
    return call


def luminance(color):
    color = np.asarray(color)[:3]
    linear = np.where(
        color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4
    )
    return linear @ (0.2126, 0.7152, 0.0722)


def test_shades_are_shares_of_the_true_class(drawn):
    axes = drawn([[2, 0, 0], [100, 100, 200], [0, 0, 0]], "abc")
    np.testing.assert_allclose(
        axes.images[0].get_array(),
        [[1, 0, 0], [0.25, 0.25, 0.5], [0, 0, 0]],
    )
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("true", "predicted")


def test_counts_are_in_their_cells(drawn):
    confusion = np.array([[1_234_567, 2], [0, 89]])
    axes = drawn(confusion, ["yes", "no"])
    texts = {text.get_position(): text for text in axes.texts}
    assert texts[0, 0].get_text() == "1,234,567"
    assert texts[1, 0].get_text() == "2"  # row 0, column 1
    assert texts[0, 1].get_text() == "0"
    width = axes.get_window_extent().width / 2
    assert texts[0, 0].get_window_extent().width < width


def test_counts_can_be_read_on_each_shade(drawn):
    """In each row two shares, which are 100 together."""
    confusion = np.zeros((11, 11), int)
    confusion[:, 0] = range(0, 51, 5)
    confusion[:, 1] = 100 - confusion[:, 0]
    axes = drawn(confusion, "abcdefghijk")
    picture = axes.images[0]
    assert len(axes.texts) == confusion.size
    for text in axes.texts:
        column, row = text.get_position()
        shade = picture.cmap(picture.norm(picture.get_array()[row, column]))
        ink = {"white": (1, 1, 1), "black": (0, 0, 0)}[text.get_color()]
        dark, light = sorted([luminance(shade), luminance(ink)])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_letter_is_drawn_with_a_font_that_has_it(drawn, chinese):
    with ignore_missing_glyphs():
        axes = drawn([[1, 0], [0, 1]], ["日", "b"])
    for label in (axes.get_xticklabels()[0], axes.get_yticklabels()[0]):
        assert label.get_family() == chinese


def test_many_classes_have_a_picture_that_can_be_shown(drawn):
    axes = drawn(np.eye(300, dtype=int) * 1000, [f"c{n}" for n in range(300)])
    assert not axes.texts  # because they would overlap
    names = axes.get_yticklabels()
    boxes = [name.get_window_extent() for name in names]
    assert not any(above.overlaps(below) for above, below in pairwise(boxes))
    assert [name.get_text() for name in names[:3]] == ["c0", "c4", "c8"]


def test_the_size_is_bounded():
    small = size_of(confusion_picture(np.eye(3, dtype=int), "abc"))
    many = [f"class {n}" for n in range(300)]
    large = size_of(confusion_picture(np.eye(300, dtype=int), many))
    assert max(small) < 800
    assert max(large) < 2000


@pytest.mark.parametrize("name", ["$", "$x$", "日", "न", "</s>", "x" * 999])
def test_any_class_can_be_drawn(name):
    assert max(size_of(confusion_picture([[1]], [name]))) < 800
