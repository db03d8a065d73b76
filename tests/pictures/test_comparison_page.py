import re

import numpy as np

from kseq.evaluation import Comparison, exact_match
from kseq.serving import Attention
from tests.pictures.test_document_page import ATTRIBUTES, TAGS, Page

ATTENTION = Attention(["▁a", "</s>"], ["▁x", "</s>"], np.ones((2, 2)) / 2)
RIGHT = ["a red <b>dog</b>", "one two", "日本語です"]
WRONG = ["a blue <b>dog</b>", "one two", "日本人です"]


def page(outputs, attend=lambda system, places: None):
    compared = Comparison(RIGHT, RIGHT, outputs, [exact_match])
    return compared.page(["<first>", "second"], attend)


def test_outline():
    found = Page(page([WRONG, RIGHT]))
    assert [element["id"] for element in found.all("h2")] == [
        *("legend", "line-1", "line-3"),
    ]
    assert "2 lines" in found.text("title")
    assert found.text("article").count("B is better") == 2
    assert "Attention" not in found.text("article")


def test_texts_are_escaped_and_differences_marked():
    html = page([WRONG, RIGHT])
    assert "<first>" not in html and "<b>dog" not in html
    assert re.findall("<mark>(.*?)</mark>", html) == ["blue", "red", "人", "語"]
    swapped = page([RIGHT, WRONG])
    assert swapped.count("B is worse") == 2


def test_nothing_runs_and_nothing_is_fetched():
    def attend(system, places):
        return dict.fromkeys(places, ATTENTION) if system else None

    html = page([WRONG, RIGHT], attend)
    found = Page(html)
    more = {"b", "i", "caption", "details", "summary", "br", "thead", "tbody"}
    assert {tag for tag, _ in found.elements} <= {*TAGS, *more}
    names = {name for _, element in found.elements for name in element}
    assert names <= {*ATTRIBUTES, "aria-label"}
    assert not re.search("url|import|expression|//", found.text("style"))
    assert html.count("Attention of B") == 2
    assert "Attention of A" not in html
    ids = [found["id"] for _, found in found.elements if "id" in found]
    assert len(ids) == len(set(ids))


def test_systems_that_are_equal():
    found = Page(page([RIGHT, RIGHT]))
    assert "0 lines" in found.text("title")
    assert found.text("article") == ""
