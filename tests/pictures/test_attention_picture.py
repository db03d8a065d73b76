import importlib
import io
import warnings

import numpy as np
import pytest
from matplotlib import font_manager, image
from matplotlib.ft2font import FT2Font

from kseq.pictures import attention_picture, figures

module = importlib.import_module("kseq.pictures.attention_picture")


def pixels(png):
    return image.imread(io.BytesIO(png), format="png")


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


def test_a_letter_is_drawn_with_a_font_that_has_it(monkeypatch):
    """Fonts of the machine, here with one that has a Chinese letter."""
    default = font_manager.findfont("DejaVu Sans")
    other = font_manager.FontEntry(fname=default, name="DejaVu Serif")
    charmap = FT2Font(default).get_charmap()

    def letters_of(font):
        return set(map(chr, charmap)) | ({"日"} if font is other else set())

    listed = font_manager.fontManager.ttflist
    listed = [font for font in listed if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*listed, other])
    monkeypatch.setattr(figures, "_letters_of", letters_of)
    monkeypatch.setattr(figures, "_families", {})
    axes = drawn(monkeypatch, ["日本"], ["a"])
    [label] = axes.get_xticklabels()
    assert label.get_family() == ["DejaVu Sans", "DejaVu Serif"]
    assert figures._families["本"] is None


def test_letters_without_a_font_are_boxes_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert attention_picture(np.ones((1, 1)), ["\U0001f9ff"], ["𓀀"])
