import importlib
import warnings

import numpy as np
import pytest

from kseq.pictures import attention_picture, figures
from tests.pictures.pixels import pixels

module = importlib.import_module("kseq.pictures.attention_picture")


def test_dark_where_the_weight_is():
    tokens = ["one", "two", "three"]
    weights = np.eye(3)[[2, 0, 1]]
    one = pixels(attention_picture(weights, tokens, tokens))
    other = pixels(attention_picture(np.zeros((3, 3)), tokens, tokens))
    assert one.shape == other.shape
    assert (other - one).max() > 0.9  # white has become black
    assert (one - other).max() < 0.01


@pytest.mark.parametrize("token", ["$", "$x$", "日", "\u0301", "न", "</s>"])
def test_any_token_can_be_drawn(token):
    assert attention_picture(np.ones((1, 1)), [token], [token])


def test_a_long_sentence_has_a_larger_picture():
    small = pixels(attention_picture(np.ones((2, 3)), "abc", "ab"))
    large = pixels(attention_picture(np.ones((20, 30)), "c" * 30, "a" * 20))
    assert large.shape[0] > 2 * small.shape[0]
    assert large.shape[1] > 2 * small.shape[1]


def drawn(monkeypatch, sources, targets):
    monkeypatch.setattr(module, "figure_to_png", lambda figure: figure)
    weights = np.zeros((len(targets), len(sources)))
    figure = attention_picture(weights, sources, targets)
    return figure.axes[0]


def test_axes_have_titles_and_words_their_spaces(monkeypatch):
    axes = drawn(monkeypatch, ["▁the", "\ufdd0", "s"], ["▁", "▁▁a", "</s>"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "answer")
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == [" the", "▁", "s"]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["␣", "  a", "</s>"]


@pytest.mark.parametrize(("rows", "columns"), [(12, 9), (12, 3), (1, 39)])
@pytest.mark.parametrize("token", ["9", "Donaudampf"])
def test_no_label_is_cut(rows, columns, token):
    png = attention_picture(
        np.ones((rows, columns)), ["▁a"] * columns, [token] * rows
    )
    picture = pixels(png)
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert edge.min() == 1  # all of it white


@pytest.mark.parametrize("sources", [["</s>"], []])
def test_an_empty_answer_has_a_picture_without_a_warning(sources):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert attention_picture(np.zeros((0, len(sources))), sources, [])


def test_a_letter_is_drawn_with_a_font_that_has_it(chinese, monkeypatch):
    axes = drawn(monkeypatch, ["日本"], ["a"])
    [label] = axes.get_xticklabels()
    assert label.get_family() == chinese
    assert figures._families["本"] is None


def test_letters_without_a_font_are_boxes_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert attention_picture(np.ones((1, 1)), ["\U0001f9ff"], ["𓀀"])
