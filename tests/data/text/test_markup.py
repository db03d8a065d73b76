import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseq.data.text.markup import MarkedText, Word, split_markup


def copied(document):
    """The document, each of whose texts is its own answer."""
    return "".join(
        part
        if isinstance(part, str)
        else part.answered(part.text, words_of(part.text))
        for part in split_markup(document)
    )


def words_of(text):
    """Its words, each of which translates itself."""
    return [Word(*found.span(), found.start()) for found in WORD.finditer(text)]


WORD = re.compile(r"\w+|[^\w\s]")
TAG = re.compile(r"<[^<>]*>")


@pytest.mark.parametrize(
    "document",
    [
        "",
        " \n",
        "<p>A <b>red</b> cat</p>",
        "<p>\n  Two <i>cats</i>.\n</p>\n",
        "<a href='x>y' title=\"<b>\">click <i>here</i></a> now",
        "<b>half <p>of <i>it</b> all",
        "</b></i>x<i>",
        "<!-- <p>a</p> --><script>if (a<b) x</script>t",
        "<p translate=no>Keep <b>me</b></p> go <code>f(x)</code> on",
        "Hi {name}, %s of %(all)s, {{ x | y }} and ${z}.",
        '<g id="1">Save <x id="2"/>all</g> <bpt id="3"/>files',
        "<i class=icon></i> Home",
        "1 &lt; 2 &amp; x",
        "<b><i>" * 200 + "deep" + "</i></b>" * 200,
    ],
)
def test_a_copy_is_the_document(document):
    assert copied(document) == document


@pytest.mark.parametrize(
    "part",
    [
        *("<", '<a "', "<a ", "a", "</", "&lt;", "<!-", "<!--", "<?"),
        *("<![CDATA[", "<script", "<STYLE ", "<textarea/"),
    ],
)
def test_what_is_no_tag_is_text(part):
    document = f"x<{20_000 * part}"  # slow, if each looks for its end
    assert copied(document) == html.escape(html.unescape(document), quote=False)


def texts_of(document):
    return [
        part.text
        for part in split_markup(document)
        if not isinstance(part, str)
    ]


def test_blocks_end_a_text():
    assert texts_of("<td>Yes</td><td>No</td>") == ["Yes", "No"]
    assert texts_of("A<br>B") == ["A", "B"]
    assert texts_of("<string>A</string>\n<string>B</string>") == ["A", "B"]
    assert texts_of("A <em>big</em> <mark>cat</mark>") == ["A big cat"]
    assert texts_of("<p>A\n cat</p>") == ["A  cat"]
    assert texts_of("<p>- {x} <b>&nbsp;</b></p>") == []


def test_elements_follow_their_words():
    [text] = split_markup("a <b>red <i>old</i></b> car<img>, {n} x")
    assert text.text == "a red old car, x"
    answer = "une voiture rouge et vieille, x"
    sources = (0, 10, 2, 2, 6, 13, 16)
    words = [
        word._replace(source=source)
        for word, source in zip(words_of(answer), sources, strict=True)
    ]
    assert text.answered(answer, words) == (
        "une voiture <b>rouge et <i>vieille</i></b><img>, {n} x"
    )
    assert text.answered("", []) == "<b><i></i></b><img>{n}"


def test_an_element_encloses_what_follows_one_another():
    text = MarkedText("a b c", split_markup("a <b>b</b> c")[0].elements)
    answer = "B x y B B"
    words = [Word(at, at + 1, 2 * (answer[at] == "B")) for at in range(0, 9, 2)]
    assert text.answered(answer, words) == "B x y <b>B B</b>"


@st.composite
def documents(draw, depth=3):
    """Well-formed documents of words, elements and single tags."""
    parts = draw(st.lists(st.sampled_from("we<>/"), max_size=5))
    text = ""
    for part in parts:
        if part in "we":
            text += f" {part}"
        elif part == "/":
            text += f"<x{len(text)}/>"
        elif depth:
            inner = draw(documents(depth=depth - 1))
            text += f" <b>{inner}</b>"
    return text


@given(documents(), st.lists(st.integers(0, 30), max_size=8))
def test_answers_have_all_tags_nested(document, sources):
    answer = " ".join("word" for _ in sources)
    words = [
        word._replace(source=source)
        for word, source in zip(words_of(answer), sources, strict=True)
    ]
    for part in split_markup(document):
        if isinstance(part, str):
            continue
        found = part.answered(answer, words)
        copy = part.answered(part.text, words_of(part.text))
        assert sorted(TAG.findall(found)) == sorted(TAG.findall(copy))
        assert TAG.sub("", found).split() == answer.split()
        pairs = re.sub(r"<x\d+/>", "", found)
        while pairs != (pairs := re.sub(r"<b>[^<>]*</b>", "", pairs)):
            pass
        assert not TAG.search(pairs)


def test_the_number_of_no_character():
    """Python refuses to read thousands of digits."""
    [text] = split_markup(f"a &#{'1' * 5000};b &#{'1' * 5000} &#00065;")
    assert text.text == "a \ufffdb \ufffd A"


@pytest.mark.parametrize(
    "document",
    [
        "x " + "<b>a</b> <i/>" * 20_000 + "y",
        "x" + " <lb>y" * 20_000,
    ],
)
def test_many_tags_in_a_text(document):
    """Minutes, if each looks at all words."""
    start = time.process_time()
    assert copied(document) == document
    assert time.process_time() - start < 30
