import re

import numpy as np
import pytest

from kseq.pictures import attention_page
from kseq.serving import Attention
from tests.pictures.test_document_page import ATTRIBUTES, TAGS, Page

WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.2, 0.2, 0.6]])
ATTENTION = Attention(["▁a", "▁b", "</s>"], ["▁x", "</s>"], WEIGHTS)


def of_token(token):
    """It is a source token and a target token."""
    return Attention([token], ["▁x", token], np.ones((2, 1)))


def test_outline():
    empty = Attention(["▁a", "</s>"], ["</s>"], np.ones((1, 2)) / 2)
    nothing = Attention([], [], np.zeros((0, 0)))
    page = Page(attention_page(iter([ATTENTION, empty, nothing])))
    assert "3 lines" in page.text("title")
    assert [found["id"] for found in page.all("h2")] == [
        *("legend", "line-1", "line-2", "line-3"),
    ]
    assert page.text("article").count("The answer is empty.") == 2
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    assert {found["href"] for found in page.all("a")} == {
        f"#{name}" for name in ids if name.startswith("line-1-")
    }


def test_nothing_runs_and_nothing_is_fetched():
    page = Page(attention_page([ATTENTION]))
    assert {tag for tag, _ in page.elements} <= {*TAGS, "b", "i"}
    found = {name for _, found in page.elements for name in found}
    assert found <= {*ATTRIBUTES, "aria-label"}
    page.policy()


def test_a_token_that_is_pointed_at_shades_its_sources():
    page = Page(attention_page([ATTENTION]))
    assert [found["style"] for found in page.all("b")] == [
        "--t1:var(--shade-4);--t2:var(--shade-2)",
        "--t1:var(--shade-1);--t2:var(--shade-2)",
        "--t2:var(--shade-4)",
    ]
    assert [found["class"] for found in page.all("a")] == ["t1", "t2"]
    rules = re.findall(r"\.pair:has\(\.t(\d):(\w+)\) b", page.text("style"))
    # The later ones win: pointing wins over the focus of the keyboard.
    assert rules == [
        *(("1", "focus"), ("2", "focus"), ("1", "hover"), ("2", "hover")),
    ]


def test_weights_are_stated_as_text():
    page = Page(attention_page([ATTENTION]))
    text = " ".join(page.text("li").split())
    assert "x from a 90.0%, b 10.0%" in text
    assert text.endswith("end from end 60.0%, a 20.0%, b 20.0%")


def test_spaces_are_spaces_and_characters_whole():
    tokens = ["▁two", "▁", "words", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    tokens += ["<0xC3>", "▁end", "</s>"]
    weights = np.full((10, 10), 0.1)
    page = Page(attention_page([Attention(tokens, tokens, weights)]))
    assert "two words😀\ufffd end end" in page.text("div")
    assert "▁" not in page.text() and "0x" not in page.text()
    text = " ".join(page.text("li").split())
    assert "two from 😀 40.0%" in text
    assert "␣ from" in text


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"'><svg/onload=alert(1)>",
        "</a></p></div><h1>owned</h1>",
        "<!--",
        "&lt;b&gt;&#60;",
    ],
)
def test_text_stays_text(attack):
    harmless = Page(attention_page([of_token("x")]))
    page = Page(attention_page([of_token(attack)]))
    assert page.elements == harmless.elements
    assert page.text("div").count(attack) == 2
    assert attack in page.text("li")


def test_characters_that_a_page_must_not_have_are_replaced():
    page = attention_page([of_token("a\0\x1b\x85\u202eb")])
    assert "a\ufffd\ufffd\ufffd\ufffdb" in Page(page).text("div")
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)


def test_right_to_left_text_has_its_direction():
    page = Page(attention_page([of_token("▁שלום")]))
    pair = page.all("p", dir="auto")
    assert pair == [{"dir": "auto", "lang": ""}] * 2


def test_a_long_answer_has_a_bounded_page():
    tokens = [f"▁{number}" for number in range(400)]
    weights = np.full((400, 400), 1 / 400)
    assert len(attention_page([Attention(tokens, tokens, weights)])) < 400_000


def test_turns_of_a_dialogue_are_apart():
    weights = np.array([[0.1, 0.1, 0.5, 0.3], [0.0, 0.0, 0.5, 0.5]])
    dialogue = Attention(["▁a", "</s>", "▁b", "</s>"], ["▁x", "</s>"], weights)
    page = Page(attention_page([dialogue]))
    assert len(page.all("p")) == 1 + len(
        Page(attention_page([ATTENTION])).all("p")
    )
    assert "turns: 1 20.0%, 2 80.0%" in page.text("li")
    assert "turns" not in Page(attention_page([ATTENTION])).text("li")


def test_a_dialogue_without_turns():
    page = Page(attention_page([Attention([], ["▁x"], np.zeros((1, 0)))]))
    assert "turns" not in page.text("li")
