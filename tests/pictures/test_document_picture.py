import importlib

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from kseq.pictures.document_picture import (
    SHADES,
    document_picture,
    shade_levels,
)
from kseq.pictures.figures import ignore_missing_glyphs
from kseq.serving import ExplainedDocument
from tests.pictures.pixels import pixels

module = importlib.import_module("kseq.pictures.document_picture")


def explained(
    sentence_weights, words, word_weights, label="fire", probability=0.987
):
    return ExplainedDocument(
        *(["".join(row).strip() for row in words], sentence_weights),
        *(words, word_weights, label, probability),
    )


TWO_SENTENCES = explained(
    sentence_weights=[0.25, 0.75],
    words=[["All", " is", " well."], ["A", " f", "ire", " broke", " out."]],
    word_weights=[[0.2, 0.1, 0.7], [0.0, 0.1, 0.8, 0.1, 0.0]],
)


def document_of(*sentences, weights=None):
    """All words of a sentence weigh the same."""
    return explained(
        weights or [1 / len(sentences)] * len(sentences),
        sentences,
        [[1 / len(words)] * len(words) for words in sentences],
    )


@pytest.fixture
def drawn(monkeypatch):
    """Draws a document; gives the axes."""

    def call(document, title="A title"):
        FigureCanvasAgg(figure := document_picture(document, title)).draw()
        return figure.axes[0]

    monkeypatch.setattr(module, "figure_to_png", lambda figure: figure)
    return call


def box_of(axes, text):
    (found,) = (part for part in axes.texts if part.get_text() == text)
    return found.get_window_extent()


def test_shares_of_words_sum_to_their_sentence():
    shares = TWO_SENTENCES.word_shares
    np.testing.assert_allclose(shares[0], [0.05, 0.025, 0.175])
    np.testing.assert_allclose([sum(row) for row in shares], [0.25, 0.75])


def test_shades_compare_words_with_the_strongest():
    assert shade_levels(TWO_SENTENCES) == [[0, 0, 2], [0, 1, 4, 1, 0]]
    weights = [0.0, 0.1, 0.24, 0.25, 0.5, 0.74, 0.75, 1.0]
    one = explained([1.0], [["x"] * 8], [weights])
    assert shade_levels(one) == [[0, 1, 1, 2, 3, 3, 4, 4]]
    assert shade_levels(explained([0.0], [["x"]], [[0.0]])) == [[0]]


def test_a_shade_is_under_its_word(drawn):
    axes = drawn(TWO_SENTENCES)
    darkest = SHADES[max(SHADES)]
    word = box_of(axes, "ire")
    behind = [
        patch
        for patch in axes.patches
        if to_hex(patch.get_facecolor()) == darkest
        and patch.get_window_extent().overlaps(word)
    ]
    (box,) = (patch.get_window_extent() for patch in behind)
    assert box.x0 <= word.x0
    assert box.x1 >= word.x1


def test_bars_are_as_long_as_weights(drawn):
    axes = drawn(document_of(["a"], ["b"], ["c"], weights=[0.6, 0.3, 0.1]))
    lengths = [
        next(
            patch.get_width()
            for patch in axes.patches
            if patch.get_window_extent().y0 < box_of(axes, weight).y1
            and patch.get_height() == 9
        )
        for weight in ("60.0%", "30.0%", "10.0%")
    ]
    np.testing.assert_allclose(lengths, [60, 30, 10])


def test_letters_do_not_overlap_and_stay_on_the_picture(drawn, seed):
    draw = np.random.default_rng(seed)
    letters = list("aäfgijlWm,.'")
    sentences = [
        [
            " " * draw.integers(2) + "".join(draw.choice(letters, size))
            for size in draw.integers(1, 20, size=40)
        ]
        for _ in range(4)
    ]
    axes = drawn(document_of(*sentences, ["W" * 400]), title="W " * 100)
    boxes = [text.get_window_extent() for text in axes.texts]
    page = axes.get_window_extent()
    for place, box in enumerate(boxes):
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1
        for other in boxes[place + 1 :]:
            width = min(box.x1, other.x1) - max(box.x0, other.x0)
            height = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert width <= 2 or height <= 2  # f leans over what follows


def test_lines_break_between_written_words(drawn):
    axes = drawn(document_of([" dawn", "break", "ing"] * 40))
    lines = {
        part: [
            text.get_position()[1]
            for text in axes.texts
            if text.get_text() == part
        ]
        for part in ("dawn", "break", "ing")
    }
    assert len(set(lines["dawn"])) > 3
    assert lines["dawn"] == lines["break"] == lines["ing"]


def test_lines_break_within_a_word_that_is_too_long(drawn):
    axes = drawn(document_of(list("x" * 100), ["y" * 100]))
    for letter in "xy":
        lines = {
            text.get_position()[1]
            for text in axes.texts
            if text.get_text().startswith(letter)
        }
        assert len(lines) > 1


def test_the_first_word_of_right_to_left_text_is_on_the_right(drawn):
    axes = drawn(document_of(["بيت", " كبير"], ["large", " house"]))
    assert box_of(axes, "بيت").x0 > box_of(axes, "كبير").x1
    assert box_of(axes, "large").x1 < box_of(axes, "house").x0


def test_a_letter_is_drawn_with_a_font_that_has_it(drawn, chinese):
    with ignore_missing_glyphs():
        axes = drawn(document_of(["日", " a"]), title="日")
    families = [text.get_fontfamily() for text in axes.texts]
    assert len(families) > 3
    assert all(family == chinese for family in families)


def test_of_a_long_document_the_strongest_sentences_are_drawn(drawn):
    weights = [0.001] * 500
    weights[300], weights[400] = 0.2, 0.3
    sentences = [[f"part{number}"] for number in range(500)]
    axes = drawn(document_of(*sentences, weights=weights))
    texts = [text.get_text() for text in axes.texts]
    assert [text for text in texts if text.startswith("part")] == [
        *(f"part{number}" for number in range(18)),
        "part300",
        "part400",
    ]
    assert "301" in texts
    assert " ".join(texts).endswith(
        "the 20 sentences with the largest weights are shown, of 500."
    )


@pytest.mark.slow
def test_a_picture_is_never_gigantic():
    sentence = ["very", *[" extraordinarily-long"] * 40]
    png = document_picture(document_of(*[sentence] * 50), "x" * 200)
    height, width, _ = pixels(png).shape
    assert width < 1000
    assert height < 4000


@pytest.mark.parametrize(
    "document", [explained([], [], []), explained([0.0], [[]], [[]])]
)
def test_an_empty_document_says_so(drawn, document):
    axes = drawn(document, title="Nothing")
    texts = " ".join(text.get_text() for text in axes.texts)
    assert texts.startswith("Nothing")
    assert texts.endswith("The document is empty.")


@pytest.mark.parametrize(
    "word", ["$", "$x$", "日", "\u0301", "न", "</s>", "\0", "a\nb", " ", ""]
)
def test_any_word_can_be_drawn(word):
    assert document_picture(document_of([word, " x"]), word)
