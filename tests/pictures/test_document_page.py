import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from kseq.pictures import explanation_page
from kseq.pictures.document_page import document_page
from tests.pictures.test_document_picture import explained

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section"),
    *("article", "h1", "h2", "p", "ul", "li", "dl", "dt", "dd", "table"),
    *("thead", "tbody", "tr", "th", "td", "div", "span", "bdi", "a", "mark"),
    "strong",
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "name", "content", "class", "id", "dir"),
    *("aria-labelledby", "aria-hidden", "href", "scope", "style"),
}


DOCUMENT = explained(
    sentence_weights=[0.2, 0.79, 0.01],
    words=[
        ["All", " is", " well."],
        ["A", " f", "ire", " broke", " out."],
        ["Bye."],
    ],
    word_weights=[[0.2, 0.2, 0.6], [0.0, 0.1, 0.8, 0.1, 0.0], [1.0]],
)
EMPTY = explained([], [], [], label="none", probability=0.4)


def document_of(word, **fields):
    """It has the word twice, shaded and unshaded."""
    return explained([1.0], [[word, f" {word}"]], [[1.0, 0.0]], **fields)


class Page(HTMLParser):
    """What a browser would find; fails where a tag is left open."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("h2", "dd"):
            self.handle_data("\n")
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def all(self, tag, **attributes):
        """The attributes of all such elements."""
        return [
            found
            for name, found in self.elements
            if name == tag and attributes.items() <= found.items()
        ]

    def text(self, tag=None):
        """All text, or all in elements with a tag."""
        return "".join(
            data
            for path, data in self.texts
            if (tag in path if tag else "style" not in path)
        )

    def policy(self):
        """The rules by which nothing runs and nothing is fetched."""
        assert not re.search("url|import|expression|//", self.text("style"))
        policy = self.elements[3][1]  # before the style
        assert policy["http-equiv"] == "Content-Security-Policy"
        rules = policy["content"].split("; ")
        assert {"default-src 'none'", "style-src 'unsafe-inline'"} <= {*rules}
        assert not any("script" in rule for rule in rules)
        return rules


def test_outline():
    page = Page(document_page([DOCUMENT, EMPTY]))
    assert len(page.all("h1")) == 1
    assert page.all("html") == [{"lang": "en"}]
    assert "2 documents" in page.text("title")
    assert " ".join(page.text("h2").split()) == (
        "How to read this page "
        "Document 1 fire probability 98.7% "
        "Document 2 none probability 40.0%"
    )
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    references = [
        *(found["href"].removeprefix("#") for found in page.all("a")),
        *(found["aria-labelledby"] for found in page.all("article")),
    ]
    assert set(references) <= set(ids)


def test_it_is_the_same_each_time():
    assert document_page([DOCUMENT]) == document_page(iter([DOCUMENT]))


def test_nothing_runs_and_nothing_is_fetched():
    text = document_page([DOCUMENT, EMPTY])
    page = Page(text)
    assert {tag for tag, _ in page.elements} == TAGS
    assert {name for _, found in page.elements for name in found} == ATTRIBUTES
    assert all(found["href"].startswith("#") for found in page.all("a"))
    page.policy()


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"'><svg/onload=alert(1)>",
        "</td></table><h1>owned</h1>",
        "<!--",
        "]]>&lt;b&gt;&#60;",
        "</style><style>*{display:none}",
    ],
)
def test_text_stays_text(attack):
    harmless = Page(document_page([document_of("x", label="x")]))
    page = Page(document_page([document_of(attack, label=attack)]))
    assert page.elements == harmless.elements
    assert attack in page.text("h2")
    assert f"{attack} {attack}" in page.text("td")
    assert attack in page.text("dl")


def test_characters_that_a_page_must_not_have_are_replaced():
    page = document_page([document_of("a\0b\x1bc\x85d\nä🙂", label="\x7f")])
    assert "a\ufffdb\ufffdc\ufffdd\nä🙂" in Page(page).text("td")
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", page)


def test_weights_are_stated_as_text():
    page = Page(document_page([DOCUMENT]))
    weights = page.text("tbody").split()
    for number, weight in (("1", "20.0%"), ("2", "79.0%"), ("3", "1.0%")):
        assert weights[weights.index(number) + 1] == weight
    assert " ".join(page.text("dd").split()) == (
        "sentence 2 (79.0%), sentence 1 (20.0%) "  # 3 does not compare
        "ire (63.2%, sentence 2), well. (12.0%, sentence 1), "
        "f (7.9%, sentence 2)"
    )
    widths = [found["style"] for found in page.all("span", **{"class": "bar"})]
    assert widths == ["width: 25.3%", "width: 100.0%", "width: 1.3%"]
    bars = page.all("span", **{"class": "bar", "aria-hidden": "true"})
    assert len(bars) == 3


def test_words_are_shaded_and_sentences_whole():
    text = document_page([DOCUMENT])
    assert (
        'A <mark class="shade-1">f</mark><mark class="shade-4">ire</mark> '
        '<mark class="shade-1">broke</mark> out.</td>'
    ) in text
    page = Page(text)
    for words in DOCUMENT.words:
        assert "".join(words) in page.text("td")
    in_legend = [found["class"] for found in page.all("mark")][:4]
    assert in_legend == [f"shade-{level}" for level in (1, 2, 3, 4)]
    for bound in ("10%", "25%", "50%", "75%"):
        assert f" {bound} or more" in page.text("li")
    assert "not proofs" in page.text("section")


def luminance(color):
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_contrast():
    """WCAG 2, 1.4.3 for text and 1.4.11 for bars."""
    style = Page(document_page([])).text("style")
    colors = dict(re.findall(r"--(\w+): (#\w{6})", style))
    shades = re.findall(r"\.shade-\d { background: (#\w{6})", style)
    assert len(shades) == 4
    for background in (colors["paper"], colors["panel"]):
        assert contrast(colors["muted"], background) >= 4.5
        assert contrast(colors["bar"], background) >= 3
    for background in (colors["paper"], colors["panel"], *shades):
        assert contrast(colors["ink"], background) >= 4.5


def test_shades_differ_without_colour():
    style = Page(document_page([])).text("style")
    shades = re.findall(r"background: (#\w{6}); border-width: (\d)px", style)
    assert [int(line) for _, line in shades] == [1, 2, 3, 4]
    colors = ["#ffffff", *(color for color, _ in shades)]
    for lighter, darker in pairwise(colors):
        assert luminance(lighter) > luminance(darker)
        assert contrast(lighter, darker) > 1.1


def test_right_to_left_text_turns_nothing_else():
    hebrew = "שלום"
    override = "\u202eright\u2066"
    documents = [document_of(word, label=word) for word in (hebrew, override)]
    text = document_page(documents)
    page = Page(text)
    sentences = page.all("td", **{"class": "sentence"})
    assert [found["dir"] for found in sentences] == ["auto", "auto"]
    assert [found["lang"] for found in sentences] == ["", ""]
    assert page.text("bdi") == (
        f"{hebrew}{hebrew}\ufffdright\ufffd\ufffdright\ufffd"
    )
    assert "unicode-bidi: isolate" in page.text("style")
    assert "text-align: left" not in page.text("style")


def test_long_words_wrap():
    page = Page(document_page([document_of("x" * 5000, label="y" * 5000)]))
    assert "x" * 5000 in page.text("td")
    style = page.text("style")
    (wrapping,) = re.findall(r"([^\n]*) { overflow-wrap: anywhere }", style)
    assert wrapping.split(", ") == ["bdi", ".sentence"]
    assert "table-layout: fixed" in style
    assert page.all("meta", name="viewport")


@pytest.mark.parametrize(
    "document",
    [EMPTY, explained([0.0], [[]], [[]]), explained([0], [[" "]], [[0]])],
)
def test_an_empty_document_says_so(document):
    page = Page(document_page([document]))
    assert "The document is empty" in page.text("article")
    assert not page.all("table")


def test_no_document():
    page = Page(document_page([]))
    assert "0 documents" in page.text("main")
    assert not page.all("article")


def test_punctuation_is_not_a_strongest_word():
    words = [["The", " (", "fire", " ", "."]]
    document = explained([1.0], words, [[0.05, 0.2, 0.25, 0.1, 0.4]])
    page = Page(document_page([document]))
    assert " ".join(page.text("dd").split()) == (
        "sentence 1 (100.0%) fire (25.0%, sentence 1), The (5.0%, sentence 1)"
    )
    shades = [found["class"] for found in page.all("mark")][4:]
    assert shades == ["shade-1", "shade-4", "shade-4", "shade-4"]

    for words in (["!", " ?"], ["…", "😀"], ["।", "—"]):
        page = Page(document_page([explained([1.0], [words], [[0.7, 0.3]])]))
        assert f"{words[0]} (70.0%" in page.text("dd")
    for word in ("日", "न", "ب", "7", "½", "x."):
        document = explained([1.0], [[word, " ."]], [[0.1, 0.9]])
        assert "(90.0%" not in Page(document_page([document])).text("dd")


def test_a_document_that_was_cut_says_so():
    whole, cut = (DOCUMENT._replace(truncated=cut) for cut in (False, True))
    assert "its end was left out" not in document_page([whole])
    assert document_page([cut]).count("its end was left out") == 1


def test_a_page_is_bounded(monkeypatch):
    """What follows is not read; the first document is always shown."""
    for name, value in (("MOST_ARTICLES", 2), ("LARGEST_PAGE", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(explanation_page, name, value)
            documents = iter([EMPTY] * 9)
            page = Page(document_page(documents))
        count = len(page.all("article"))
        assert count == (2 if name == "MOST_ARTICLES" else 1)
        assert f"ends here, after the first {count}" in page.text("main")
        assert len(list(documents)) == 9 - count - 1


def test_a_blank_piece_is_never_named():
    document = explained([1.0], [[" ", "日", "本"]], [[0.8, 0.15, 0.05]])
    page = Page(document_page([document]))
    assert " ".join(page.text("dd").split()) == (
        "sentence 1 (100.0%) 日 (15.0%, sentence 1), 本 (5.0%, sentence 1)"
    )
    assert " 日本" in page.text("td")
