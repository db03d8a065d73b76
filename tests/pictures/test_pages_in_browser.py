"""Pages of explanations in a browser without a window."""

import numpy as np
import pytest

from kseq.pictures import attention_page
from kseq.pictures.document_page import document_page
from kseq.serving import Attention
from tests.pictures.test_document_page import DOCUMENT, document_of

HOSTILE = "▁<img src=//x onerror=alert(1)><script>alert(2)</script>"
LONG = "long" * 200
CLEAR = "rgba(0, 0, 0, 0)"
WIDTHS = (320, 1280)  # pixels


@pytest.fixture
def open_page(browser):
    """Function that opens HTML; no page may complain or fetch anything."""
    contexts, problems = [], []

    def make(html, width=1280):
        context = browser.new_context(viewport={"width": width, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: problems.append(request.url))
        page.set_content(html)
        return page

    yield make
    for context in contexts:
        context.close()
    assert problems == []


def attention(sources, targets, seed=1):
    weights = np.random.default_rng(seed).dirichlet(
        [0.3] * len(sources), len(targets)
    )
    return Attention(sources, targets, weights)


def backgrounds(page):
    """Whether each source token of the first line is shaded."""
    colours = (
        page.locator("article")
        .first.locator(".pair b")
        .evaluate_all(
            "all => all.map((one) => getComputedStyle(one).backgroundColor)"
        )
    )
    return [colour != CLEAR for colour in colours]


def overflow(page):
    """Pixels that are beyond the right edge of the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_pointing_and_focus_shade_the_source(open_page):
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.4, 0.6], [0.0, 0.0, 1.0]])
    line = Attention(["▁a", "▁b", "</s>"], ["▁x", "▁y", "</s>"], weights)
    page = open_page(attention_page([line, line]))
    assert backgrounds(page) == [False, False, False]
    page.keyboard.press("Tab")
    assert backgrounds(page) == [True, True, False]
    page.keyboard.press("Tab")
    assert backgrounds(page) == [False, True, True]
    page.hover("article:first-of-type a.t3")
    assert backgrounds(page) == [False, False, True]


def test_a_token_leads_to_its_numbers(open_page):
    page = open_page(attention_page([attention(["▁a", "</s>"], ["▁x"])]))
    page.click("a.t1")
    assert page.locator("li:target").get_attribute("id") == "line-1-1"


@pytest.mark.parametrize("width", WIDTHS)
def test_text_stays_text_and_in_the_window(open_page, width):
    words = [HOSTILE, f"▁{LONG}", *["▁word"] * 300, "</s>"]
    page = open_page(attention_page([attention(words, words[:90])]), width)
    assert overflow(page) <= 0
    assert "<script>alert(2)" in page.inner_text("article")

    hostile = document_of(HOSTILE + LONG, label=LONG, probability=0.5)
    page = open_page(document_page([DOCUMENT, hostile]), width)
    assert overflow(page) <= 0
    assert "<script>alert(2)" in page.inner_text("main")
    assert page.locator("mark").count() > 2
