"""The page in a browser without a window, with a server beside it."""

import base64
import io
import math
import re
import shutil
import struct
import threading
import wave
import zlib
from urllib.parse import urlencode

import pytest
import uvicorn

from kseq.commands.serve import _listening
from kseq.server import Batcher, ModelStore, RestApp
from kseq.server.request_error import RequestError
from tests.server.page_models import (
    GRID,
    LABELS,
    LIMIT,
    RATE,
    save_page_models,
)
from tests.server.streaming_models import (
    Steps,
    fail_at,
    save_streaming_models,
)

api = pytest.importorskip(
    "playwright.sync_api",
    reason="needs playwright: pip install playwright",
    exc_type=ImportError,
)
CLASSIFIER = "<b>classifier"
HOSTILE = "<img src=x onerror=alert(1)>"
WATCH = """
window.violations = [];
document.addEventListener(
    "securitypolicyviolation", (event) => violations.push(event.blockedURI));
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folders = save_page_models(tmp_path_factory.mktemp("page"))
    shutil.copytree(folders["whisper"] / "1", folders["whisper"] / "3")
    streaming = save_streaming_models(tmp_path_factory.mktemp("streaming"))
    for name, folder in streaming.items():
        folders[f"streaming {name}"] = folder
    store = ModelStore(folders, labels={("whisper", "old"): 1})
    store.poll()
    assert store.is_ready
    yield store
    store.close()


@pytest.fixture(scope="module")
def address(store):
    """Of a server that answers until the tests are done."""
    batcher = Batcher(256)
    app = RestApp(store, batcher, hosts=("127.0.0.1",))
    options = {"lifespan": "off", "ws": "none", "log_level": "error"}
    server = uvicorn.Server(uvicorn.Config(app, **options))
    listening = _listening("127.0.0.1", 0)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}
    )
    thread.start()
    host, port = listening.getsockname()
    yield f"http://{host}:{port}/"
    server.should_exit = True
    thread.join()
    listening.close()
    batcher.close()


@pytest.fixture
def open_page(browser, address):
    """Function that opens the page; all pages are without errors."""
    contexts, errors = [], []

    def make(link=None, *, wait=True, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(WATCH)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.on(
            "console",
            lambda message: (
                errors.append(message.text)
                if message.type in ("error", "warning")
                and not message.text.startswith("Failed to load resource")
                else None
            ),
        )
        page.goto(address + (f"#{urlencode(link)}" if link else ""))
        if wait:
            page.wait_for_selector("#model option", state="attached")
        return page

    yield make
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("violations") == []
        context.close()
    assert errors == []


def expect(page, selector):
    return api.expect(page.locator(selector))


def texts(page, selector):
    return page.locator(selector).all_inner_texts()


def lit(page, line):
    return texts(page, f"[data-part={line}] .word.lit")


def translate(page, text):
    page.fill("#text", text)
    words = re.sub(r"\s+", " ", text).upper().split()[::-1]
    expect(page, "[data-part=answer] .word").to_have_count(len(words))
    expect(page, "[data-part=answer]").to_have_text(" ".join(words))


def test_an_answer_appears(open_page):
    page = open_page({"model": "translator"})
    expect(page, ".column .message").to_have_text(
        "Type a text to see the answer."
    )
    translate(page, "one two three")
    expect(page, ".column .message").to_have_text("")
    assert texts(page, "[data-part=source] .word") == [
        *("one", "two", "three", "end")
    ]
    assert page.title() == "translator - kseq"
    page.fill("#text", "  ")
    expect(page, ".column").to_have_attribute("data-state", "empty")
    expect(page, "[data-part=answer]").to_be_hidden()


def test_the_first_model_is_chosen(open_page):
    page = open_page()
    assert page.input_value("#model") == "translator"
    assert texts(page, "#version option") == ["newest (1)", "1"]


def test_stale_answers_are_dropped(open_page):
    page = open_page({"model": "translator"})
    with page.expect_request("**:predict"):
        page.fill("#text", "slow one")
    translate(page, "two")
    page.wait_for_timeout(1500)
    assert texts(page, "[data-part=answer]") == ["TWO"]
    with page.expect_request("**:predict"):
        page.fill("#text", "slow three")
    page.fill("#text", "")
    page.wait_for_timeout(1500)
    expect(page, ".column").to_have_attribute("data-state", "empty")


def test_typing_asks_once(open_page):
    page = open_page({"model": "translator"})
    asked = []
    page.on(
        "request",
        lambda request: (
            asked.append(request.post_data_json)
            if "predict" in request.url
            else None
        ),
    )
    page.locator("#text").press_sequentially("one two", delay=20)
    expect(page, "[data-part=answer]").to_have_text("TWO ONE")
    expect(page, ".heat-map").to_have_count(1)
    assert [request["instances"] for request in asked] == [
        [{"text": "one two"}],
        [{"text": "one two"}],
    ]


def test_hover_lights_up_the_other_side(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one two three")
    page.hover("[data-part=answer] .word >> nth=0")
    assert texts(page, "[data-part=answer] .chosen") == ["THREE"]
    assert lit(page, "source")[-1] == "three"
    weights = page.locator("[data-part=source] .word").evaluate_all(
        "words => words.map(word => +word.style.getPropertyValue('--weight'))"
    )
    assert weights == pytest.approx([0.0833, 0.0833, 0.8333, 0], abs=1e-3)
    expect(page, "[data-part=note]").to_have_text(
        "THREE: three 83%, one 8.3%, two 8.3%"
    )
    page.hover("[data-part=source] .word >> nth=1")
    assert texts(page, "[data-part=source] .chosen") == ["two"]
    expect(page, "[data-part=note]").to_have_text(
        "two: TWO 83%, THREE 8.3%, ONE 8.3%"
    )
    page.hover("h1")
    assert lit(page, "source") == lit(page, "answer") == []
    expect(page, "[data-part=note]").to_have_text("")


def test_keyboard(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one two three")
    page.focus("#text")
    page.keyboard.press("Tab")
    focused = "document.activeElement.innerText"
    assert page.evaluate(focused) == "THREE"
    assert "three" in lit(page, "source")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "TWO"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "ONE"
    expect(page, "[data-part=note]").to_contain_text("ONE: one 83%")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "one"
    assert lit(page, "answer")[-1] == "ONE"
    assert page.evaluate(
        "getComputedStyle(document.activeElement).outlineStyle != 'none'"
    )
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Attention"
    assert texts(page, ".chosen") == []


def test_heat_map_is_a_table(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one two")
    assert texts(page, "thead th[scope=col]") == ["one", "two", "end"]
    assert texts(page, ".heat-map th[scope=row]") == ["TWO", "ONE", "end"]
    cell = page.locator(".heat-map td >> nth=2")
    assert cell.get_attribute("title") == cell.text_content() == "88%"
    cell.hover()
    assert texts(page, "[data-part=answer] .chosen") == ["TWO"]
    assert texts(page, "[data-part=source] .chosen") == ["two"]
    shades = page.locator(".heat-map td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell).backgroundColor)"
    )
    assert shades[1] != shades[2] == shades[4]  # 0 is the corner


def test_long_texts_have_a_part_of_the_table(open_page):
    page = open_page({"model": "translator"})
    page.fill("#text", "a " * 150)
    expect(page, ".heat-map tbody tr").to_have_count(100)
    expect(page, "[data-part=heat-map]").to_contain_text(
        "Only the first 100 words of each side are shown."
    )


def test_n_best(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one two")
    page.click("text=Best answers with their scores")
    rows = page.locator(".n-best tbody tr")
    api.expect(rows).to_have_count(2)  # the third is no answer
    assert rows.all_inner_texts() == ["-0.250\tTWO ONE", "-1.500\tTWO ONE!"]
    page.fill("#text", "three")
    api.expect(rows.first).to_contain_text("THREE")


def test_the_link_restores(open_page):
    page = open_page({"model": "translator"})
    page.select_option("#model", "whisper")
    page.select_option("#version", "1")
    page.select_option("#compare", label="translator, version 1")
    text = 'one & two #3 "ü" ☃'
    page.fill("#text", text)
    expect(page, ".answer >> nth=1").to_have_text('☃ "Ü" #3 TWO & ONE')
    other = open_page(wait=False)
    other.goto(page.url)
    assert other.input_value("#text") == text
    expect(other, ".answer >> nth=0").to_have_text('☃ "ü" #3 two & one')
    expect(other, ".answer >> nth=1").to_have_text('☃ "Ü" #3 TWO & ONE')
    assert other.input_value("#model") == "whisper"
    assert other.input_value("#version") == "1"
    assert texts(other, "h2") == [
        "whisper, version 1",
        "translator, version 1",
    ]
    other.evaluate("location.hash = '#model=translator&text=four'")
    expect(other, ".answer").to_have_text("FOUR")
    assert other.input_value("#model") == "translator"
    assert other.input_value("#text") == "four"


def test_a_link_to_what_is_not_served(open_page):
    page = open_page({"model": HOSTILE, "version": 9, "compare": "x"})
    expect(page, "#message").to_have_text(
        f"The model of this link is not served here: {HOSTILE}"
    )
    assert page.input_value("#model") == "translator"
    translate(page, "one")


def test_versions_side_by_side(open_page):
    page = open_page({"model": "whisper", "text": "One"})
    assert texts(page, "#version option") == ["newest (3)", "3", "1"]
    page.select_option("#compare", label="whisper, version 1")
    expect(page, ".answer").to_have_text(["one", "one"])
    boxes = [box.bounding_box() for box in page.locator(".answer").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] < boxes[1]["x"]
    page.hover("[data-part=answer] .word >> nth=1")
    assert page.locator(".column").nth(0).locator(".lit").count() == 0
    assert page.locator(".column").nth(1).locator(".lit").count() == 1
    page.select_option("#compare", label="none")
    expect(page, ".answer").to_have_text(["one"])


@pytest.mark.parametrize(
    "text",
    ["One two.  Three", "One\n\ntwo", "One。Two", "One。」Two。", "One؟ two"],
)
def test_sentences_are_answered_one_by_one(open_page, text):
    page = open_page({"model": "whisper", "text": "One two."})
    expect(page, ".answer").to_have_text("two. one")
    expect(page, "[data-part=attention]").to_be_visible()
    page.fill("#text", text)
    expect(page, ".answer").to_contain_text("<One>")
    marked = re.sub(r"(\w+)", r"<\1>", text)
    assert texts(page, ".answer") == [marked]
    expect(page, "[data-part=attention]").to_be_hidden()
    expect(page, "[data-part=n-best]").to_be_hidden()
    page.fill("#text", "One two.")
    expect(page, "[data-part=attention]").to_be_visible()
    expect(page, "[data-part=n-best]").to_be_visible()


def test_without_attention(open_page):
    page = open_page({"model": "retriever", "text": "one"})
    expect(page, ".answer").to_have_text("one")
    expect(page, "[data-part=attention]").to_be_hidden()
    expect(page, "[data-part=n-best]").to_be_hidden()


def test_truncated(open_page):
    page = open_page({"model": "translator"})
    page.fill("#text", "a" * (LIMIT + 1))
    expect(page, ".column .message").to_have_text(
        "The end of the text was not read: it is longer than the model's limit."
    )
    translate(page, "a")
    expect(page, ".column .message").to_have_text("")


def test_what_the_server_refuses(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one")
    page.fill("#text", "fail")
    message = page.locator(".column .message")
    api.expect(message).to_contain_text("It said: ")
    api.expect(message).to_contain_text("no number")
    expect(page, ".column").to_have_attribute("data-state", "failed")
    expect(page, ".answer").to_be_hidden()
    translate(page, "two")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "The model or its version is no longer served."),
        (429, "The server is busy. Try again in a moment."),
        (504, "The model took too long."),
        (400, "The server did not answer this request."),
        (500, "The server did not answer this request."),
    ],
)
def test_errors_in_words(open_page, status, text):
    page = open_page({"model": "translator"})
    answer = {"status": status, "json": {"error": HOSTILE}}
    page.route("**:predict", lambda route: route.fulfill(**answer))
    page.fill("#text", "one")
    expected = f"{text} It said: {HOSTILE}"
    expect(page, ".column .message").to_have_text(expected)
    answer.pop("json")
    page.fill("#text", "two")
    expect(page, ".column .message").to_have_text(text)


def test_an_answer_without_its_attention(open_page):
    page = open_page({"model": "translator"})
    page.route(
        "**:predict",
        lambda route: (
            route.fulfill(status=500, json={"error": "broken"})
            if "explain" in route.request.post_data
            else route.continue_()
        ),
    )
    page.fill("#text", "one")
    expect(page, ".answer").to_have_text("ONE")
    expect(page, "[data-part=heat-map]").to_contain_text(
        "This cannot be shown."
    )


def test_a_drawn_answer_and_another(open_page):
    """With sampling, `explain` draws an answer of its own."""
    page = open_page({"model": "translator"})
    page.route(
        "**:predict",
        lambda route: (
            route.continue_()
            if "explain" in route.request.post_data
            else route.fulfill(
                json={
                    "predictions": [
                        {"text": "drawn", "score": 0, "truncated": False}
                    ]
                }
            )
        ),
    )
    page.fill("#text", "one two")
    expect(page, ".answer").to_contain_text("drawn")
    expect(page, ".answer .other").to_have_text("TWO ONE")


def test_the_server_is_gone(open_page):
    page = open_page({"model": "translator"})
    page.context.set_offline(True)
    page.fill("#text", "one")
    expect(page, ".column .message").to_have_text(
        "The server does not answer. Is it still running?"
    )
    page.context.set_offline(False)
    translate(page, "two")


def test_waiting(open_page):
    page = open_page({"model": "translator"})
    held = []
    page.route(
        "**:predict",
        lambda route: route.continue_() if held else held.append(route),
    )
    page.fill("#text", "one")
    expect(page, ".column .message").to_have_text("Waiting for the answer…")
    expect(page, ".column").to_have_attribute("aria-busy", "true")
    held[0].continue_()
    expect(page, ".answer").to_have_text("ONE")
    expect(page, ".column .message").to_have_text("")


def test_a_text_that_is_deleted_before_it_is_answered(open_page):
    page = open_page({"model": "translator"})
    page.route("**:predict", lambda route: None)
    page.fill("#text", "one")
    expect(page, ".column").to_have_attribute("aria-busy", "true")
    page.fill("#text", "")
    expect(page, ".column").to_have_attribute("data-state", "empty")
    expect(page, ".column").not_to_have_attribute("aria-busy", "true")


def test_models_that_come_later(open_page, browser, address):
    page = open_page(wait=False)
    page.context.close()
    context = browser.new_context()
    page = context.new_page()
    page.route(
        "**/models.json", lambda route: route.fulfill(json={"models": []})
    )
    page.goto(address)
    expect(page, "#message").to_have_text(
        "No model is ready yet. The page keeps looking."
    )
    page.unroute("**/models.json")
    expect(page, "#model option").not_to_have_count(0, timeout=10_000)
    context.close()


def test_hostile_text_is_inert(open_page):
    page = open_page({"model": "retriever", "text": HOSTILE})
    expect(page, ".answer").to_have_text(HOSTILE)
    page.select_option("#model", "translator")
    expect(page, ".heat-map").to_contain_text("SRC=X")
    page.hover(".answer .word >> nth=0")
    page.click("text=Best answers with their scores")
    expect(page, ".n-best").to_contain_text("<IMG")
    page.select_option("#model", CLASSIFIER)
    expect(page, ".label").to_have_text(LABELS[0])
    expect(page, "h2").to_have_text(f"{CLASSIFIER}, version 1")
    expect(page, ".document").to_contain_text("<img src=x")
    assert page.locator("#view img, #view i, header b").count() == 0


def test_right_to_left(open_page):
    page = open_page({"model": "translator", "text": "שלום עולם"})
    expect(page, ".answer .word").to_have_text(["עולם", "שלום"])
    for selector in ("#text", ".answer", "[data-part=source]"):
        direction = page.locator(selector).evaluate(
            "element => getComputedStyle(element).direction"
        )
        assert direction == "rtl", selector
    page.focus(".answer .word >> nth=0")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.innerText") == "שלום"
    without = "[data-part=content] :not([dir=auto], [dir=auto] *)"
    mixed = page.locator(without).evaluate_all(
        r"""found => found.filter(element => [...element.childNodes].some(
            node => node.nodeType == 3 && /[\u0590-\u05ff]/.test(node.data)
        )).map(element => element.outerHTML)"""
    )
    assert mixed == []


WORDS = """
async ([pieces, isJoined]) => {
    const { wordsOf } = await import("./page/pieces.js");
    return wordsOf(pieces, isJoined).map(({ text }) => text);
}
"""


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("▁The ▁w orl d . </s>", ["The", "world", ".", "end"]),
        ("▁1999 -0 3 - 03", ["1999", "-03", "-", "03"]),
        ("▁don ' t ▁( stop )", ["don't", "(", "stop", ")"]),
        ("▁k <0xC3> <0xBC> che n", ["küchen"]),
        ("▁ <0xE2> <0x98> <0x83> ▁x", ["☃", "x"]),
        ("<0xF0> <0x9F> <0x92> ▁x", ["\ufffd", "x"]),
        ("▁ 今日 は 雨", ["今日", "は", "雨"]),
        ("▁a \ufdd0 b", ["a", "▁", "b"]),
        ("▁שלום ▁ עולם", ["שלום", "עולם"]),
    ],
)
def test_pieces_are_joined_to_words(open_page, pieces, words):
    page = open_page()
    found = page.evaluate(WORDS, [pieces.split(" "), True])
    assert [word.strip() for word in found] == words


def test_pieces_that_are_not_joined(open_page):
    page = open_page()
    pieces = ["▁", "a", "b", "▁", "c", "<0xC3>", "<0xBC>", "", "</s>"]
    found = page.evaluate(WORDS, [pieces, False])
    assert found == [" a", "b", " c", "ü", "end"]


def test_weights_of_words(open_page):
    page = open_page()
    weights = page.evaluate(
        """async (weights) => {
            const { wordsOf, wordWeights } = await import("./page/pieces.js");
            const words = wordsOf(["▁a", "b", "▁c", "", ""]);
            return wordWeights(weights, words, words);
        }""",
        [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0, 0, 1]],
    )
    assert weights == [[0.625, 0.375], [0, 1]]


CONTRAST = """
(pairs) => {
    const context = document.createElement("canvas").getContext(
        "2d", {willReadFrequently: true});
    const style = getComputedStyle(document.documentElement);
    const light = (name) => {
        context.fillStyle = style.getPropertyValue(name);
        context.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(
            (v) => v / 255 <= 0.04045 ? v / 255 / 12.92
                : ((v / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return pairs.map(([one, other]) => {
        const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    });
}
"""
PAIRS = [
    *(("--ink", "--ground"), ("--ink", "--raised"), ("--ink", "--mark")),
    *(("--muted", "--ground"), ("--wrong", "--ground")),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(open_page, scheme):
    page = open_page({"model": "translator", "text": "a"}, color_scheme=scheme)
    expect(page, ".answer .word").to_have_count(1)
    assert min(page.evaluate(CONTRAST, PAIRS)) >= 4.5
    assert min(page.evaluate(CONTRAST, [("--line", "--ground")])) >= 3
    shades = page.evaluate(
        "[getComputedStyle(document.body), getComputedStyle(text)].flatMap("
        "style => [style.color, style.backgroundColor])"
    )
    levels = [sum(map(int, re.findall(r"\d+", shade))) / 3 for shade in shades]
    bright = levels[1::2] if scheme == "light" else levels[::2]
    dark = levels[::2] if scheme == "light" else levels[1::2]
    assert min(bright) > 200 > 60 > max(dark)


@pytest.mark.parametrize(
    "model",
    [
        *("translator", CLASSIFIER, "captions", "speech", "chat", "writer"),
        "tags",
    ],
)
def test_a_narrow_window(open_page, model):
    viewport = {"width": 320, "height": 600}
    link = {"model": model, "text": "Wörterbuch " * 20 + "x" * 300}
    page = open_page(link, viewport=viewport)
    page.wait_for_timeout(1000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_nothing_jumps_while_typing(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one two")
    parts = ("answer", "source", "attention", "heat-map")
    before = [page.locator(f"[data-part={p}]").bounding_box() for p in parts]
    for text in ("one three", "one three four", "five"):
        translate(page, text)
        after = [page.locator(f"[data-part={p}]").bounding_box() for p in parts]
        assert [box["y"] for box in after] == [box["y"] for box in before]


@pytest.mark.parametrize(
    "model",
    [
        *("translator", "retriever", CLASSIFIER, "captions", "speech"),
        *("chat", "writer", "tags", "numbers"),
    ],
)
def test_every_control_has_a_name(open_page, model):
    page = open_page({"model": model, "text": "one two"})
    page.wait_for_timeout(500)
    unnamed = page.locator("input, select, textarea, button, summary")
    assert unnamed.count() >= 3
    assert (
        unnamed.evaluate_all(
            """found => found.filter(element => !(
                [...element.labels ?? []].some(label => label.innerText.trim())
                || element.ariaLabel || (element.matches("button, summary")
                && element.innerText.trim())
            )).map(element => element.outerHTML)"""
        )
        == []
    )
    assert page.get_attribute("html", "lang") == "en"
    assert page.locator("h1").count() == page.locator("main").count() == 1
    assert page.locator("img:not([alt])").count() == 0
    assert page.locator("#view th:not([scope])").count() == 0
    assert page.locator("#view table:not(:has(caption, thead))").count() == 0
    ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_answers_are_announced(open_page):
    page = open_page({"model": "translator"})
    translate(page, "one two")
    spoken = page.locator("[data-part=spoken]")
    assert spoken.get_attribute("aria-live") == "polite"
    assert spoken.text_content() == "TWO ONE"


def test_classifier(open_page):
    page = open_page({"model": CLASSIFIER})
    page.fill("#text", "free money now\nhello")
    expect(page, ".label").to_have_text(LABELS[0])
    assert texts(page, ".bars tbody tr") == [
        f"{LABELS[0]}\t75%",
        f"{LABELS[1]}\t25%",
    ]
    widths = page.locator(".bar").evaluate_all(
        "bars => bars.map(bar => getComputedStyle(bar).backgroundSize)"
    )
    assert [float(w.split("%")[0].split("(")[-1]) for w in widths] == [75, 25]
    expect(page, ".document li").to_have_count(2)
    assert texts(page, ".share") == ["75%", "25%"]
    assert texts(page, ".sentence") == ["free money now", "hello"]
    assert texts(page, ".word.lit") == ["free", "hello"]
    page.focus(".sentence >> nth=1 >> .word")
    expect(page, "[data-part=note]").to_have_text(
        "hello: 100% of its sentence, 25% of the text"
    )


def test_tagger(open_page):
    page = open_page({"model": "tags"})
    page.fill("#text", "we met  ANNA in <b>")
    expect(page, ".tagged .word").to_have_count(5)
    assert texts(page, ".tagged .word") == [
        *("we\nO", "met\nO", "ANNA\nB-<b>name", "in\nO", "<b>\nO"),
    ]
    assert texts(page, ".word.lit") == ["ANNA\nB-<b>name"]
    page.hover(".word.lit")
    expect(page, "[data-part=note]").to_have_text("ANNA: B-<b>name 75%, O 25%")
    page.mouse.move(0, 0)
    expect(page, "[data-part=note]").to_have_text("")
    page.focus(".word >> nth=0")
    page.keyboard.press("ArrowRight")
    expect(page, "[data-part=note]").to_have_text("met: O 100%, B-<b>name 0%")
    page.fill("#text", "NO")
    expect(page, ".tagged .word").to_have_count(1)


def test_a_text_is_kept_for_another_model(open_page):
    page = open_page({"model": "translator", "text": "one"})
    page.select_option("#model", CLASSIFIER)
    expect(page, ".sentence").to_have_text("one")
    assert page.input_value("#text") == "one"


def test_the_model_is_changed_right_after_typing(open_page):
    page = open_page({"model": "translator"})
    page.focus("#text")
    page.keyboard.type("one")
    page.focus("#model")
    page.select_option("#model", CLASSIFIER)
    expect(page, ".sentence").to_have_text("one")
    assert page.input_value("#text") == "one"


def png(size=8):
    """A grey picture."""

    def chunk(name, content):
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    rows = (b"\0" + b"\x80" * size) * size
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(rows)),
            chunk(b"IEND", b""),
        )
    )


def wav(rate, seconds=0.5):
    """A tone of 440 Hz."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        for place in range(int(rate * seconds)):
            level = 9000 * math.sin(2 * math.pi * 440 * place / rate)
            written.writeframesraw(struct.pack("<h", round(level)))
    return file.getvalue()


def choose(page, name, content):
    """Chooses a file; the bytes that the model then gets."""
    file = {"name": name, "mimeType": "", "buffer": content}
    with page.expect_request("**:predict") as asked:
        page.set_input_files("#file", file)
    return sent(asked.value)


def sent(request):
    [instance] = request.post_data_json["instances"]
    [value] = instance.values()
    return base64.b64decode(value["b64"])


COVERED = """
canvas => {
    const {width, height} = canvas;
    const copy = new OffscreenCanvas(width, height);
    const context = copy.getContext("2d", {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    const {data} = context.getImageData(0, 0, width, height);
    return [...data].filter((_, place) => place % 4 == 3);
}
"""


def test_picture(open_page):
    page = open_page({"model": "captions", "text": "not for pictures"})
    assert choose(page, "a.png", png()) == png()
    expect(page, ".answer .word").to_have_text(["a", "red", "house"])
    expect(page, "[data-part=overlay]").to_be_hidden()
    page.hover(".answer .word >> nth=1")
    overlay = page.locator("canvas[data-part=overlay]")
    api.expect(overlay).to_be_visible()
    alphas = overlay.evaluate(COVERED)
    assert len(alphas) == GRID[0] * GRID[1]
    assert [place for place, dark in enumerate(alphas) if not dark] == [1]
    assert overlay.bounding_box() == page.locator("img").bounding_box()
    expect(page, "[data-part=note]").to_have_text(
        "Strongest at row 1 of 2, column 2 of 3: 100%"
    )
    page.click("text=Best answers with their scores")
    expect(page, ".n-best tbody tr").to_have_count(2)

    choose(page, "a.gif", b"GIF89a")
    expect(page, ".column .message").to_have_text(
        "The file may not be a JPEG or PNG picture."
    )
    assert "text" not in page.url


def test_a_dropped_picture(open_page):
    page = open_page({"model": "captions"})
    data = page.evaluate_handle(
        """bytes => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], "b.png"));
            return data;
        }""",
        list(png()),
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": data})
    expect(page, ".answer .word").to_have_count(3)
    expect(page, ".drop [data-part=name]").to_have_text("b.png")


def test_a_file_that_cannot_be_read(open_page):
    page = open_page({"model": "captions"})
    page.evaluate(
        """() => {
            File.prototype.arrayBuffer = () => Promise.reject(new Error());
        }"""
    )
    chosen = {"name": "a.png", "mimeType": "image/png", "buffer": png()}
    page.set_input_files("#file", chosen)
    expect(page, ".drop [data-part=name]").to_have_text(
        "This file cannot be read."
    )


def test_a_file_that_another_one_overtakes(open_page):
    page = open_page({"model": "captions"})
    page.evaluate(
        """() => {
            const read = File.prototype.arrayBuffer;
            File.prototype.arrayBuffer = async function () {
                if (this.name === "slow.png") {
                    await new Promise((done) => setTimeout(done, 300));
                }
                return read.call(this);
            };
        }"""
    )
    asked = []
    page.on("request", lambda request: asked.append(request))
    for name in ("slow.png", "fast.png"):
        chosen = {"name": name, "mimeType": "image/png", "buffer": png()}
        page.set_input_files("#file", chosen)
    expect(page, ".answer .word").to_have_count(3)
    page.wait_for_timeout(500)
    names = [r.post_data_json["signature_name"] for r in asked if r.post_data]
    assert names == ["serving_default", "explain"]


@pytest.mark.parametrize(
    ("model", "name", "content"),
    [("captions", "a.png", png), ("speech", "a.wav", lambda: wav(RATE))],
)
def test_files_are_freed(open_page, model, name, content):
    """Those of earlier inputs, and of a model that is left."""
    page = open_page({"model": model})
    page.evaluate(
        """() => {
            window.urls = new Set();
            const make = URL.createObjectURL, free = URL.revokeObjectURL;
            URL.createObjectURL = (file) => {
                const url = make(file);
                urls.add(url);
                return url;
            };
            URL.revokeObjectURL = (url) => {
                urls.delete(url);
                free(url);
            };
        }"""
    )
    for _ in range(2):
        choose(page, name, content())
        expect(page, ".answer .word").to_have_count(3)
        page.wait_for_function("urls.size === 1")
    page.select_option("#model", "translator")
    page.wait_for_function("urls.size === 0")


def rate_of(content):
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), file.getnframes()


def test_speech(open_page):
    page = open_page({"model": "speech"})
    assert choose(page, "a.wav", wav(RATE)) == wav(RATE)
    expect(page, ".answer .word").to_have_text(["a", "red", "house"])
    sound = page.locator("canvas[data-part=sound]")
    size = sound.evaluate("canvas => [canvas.width, canvas.height]")
    assert size == [pytest.approx(48, abs=2), 128]
    alphas = sound.evaluate(COVERED)
    rows = [
        sum(alphas[row * size[0] : (row + 1) * size[0]]) for row in range(128)
    ]
    loudest = 127 - rows.index(max(rows))  # bands from 0 to 4,000 Hz
    assert abs(loudest * 4000 / 128 - 440) < 40
    page.hover(".answer .word >> nth=2")
    expect(page, "[data-part=note]").to_have_text(
        "house: most of all at 0.20 s (100%)"
    )
    assert texts(page, ".letters span") == ["a", "red", "house"]
    page.click("text=When each part was heard")
    assert texts(page, ".n-best tr") == [
        "a\t0.00 s (100%)",
        "red\t0.10 s (100%)",
        "house\t0.20 s (100%)",
    ]
    api.expect(page.locator("audio")).to_have_js_property("error", None)


def test_speech_of_another_rate(open_page):
    page = open_page({"model": "speech"})
    heard = choose(page, "a.wav", wav(2 * RATE))
    assert rate_of(heard) == (RATE, RATE // 2)
    samples = struct.unpack(f"<{RATE // 2}h", heard[44:])
    assert max(samples) == pytest.approx(9000, rel=0.05)
    expect(page, ".answer .word").to_have_count(3)

    assert choose(page, "a.txt", b"no sound") == b"no sound"
    expect(page, ".column .message").to_have_text(
        "The browser cannot read this file as a recording."
    )


def test_recorded_speech(open_page):
    page = open_page({"model": "speech"}, permissions=["microphone"])
    page.click("button:text('Record')")
    expect(page, ".record .message").to_have_text("Recording…")
    page.wait_for_timeout(1000)
    with page.expect_request("**:predict") as asked:
        page.click("button:text('Stop')")
    rate, frames = rate_of(sent(asked.value))
    assert rate == RATE
    assert frames > RATE // 4
    expect(page, ".answer .word").to_have_count(3)


def test_who_leaves_a_recording_is_no_longer_heard(open_page):
    page = open_page({"model": "speech"}, permissions=["microphone"])
    page.evaluate(
        """() => {
            const devices = navigator.mediaDevices;
            const ask = devices.getUserMedia.bind(devices);
            window.tracks = [];
            devices.getUserMedia = async (wanted) => {
                const stream = await ask(wanted);
                tracks.push(...stream.getTracks());
                return stream;
            };
        }"""
    )
    page.evaluate(
        """() => {
            const [button] = document.querySelectorAll(".record button");
            button.click();
            button.click();
        }"""
    )
    expect(page, ".record .message").to_have_text("Recording…")
    asked = []
    page.on("request", lambda request: asked.append(request))
    page.select_option("#model", "translator")
    page.wait_for_function(
        "tracks.every(({ readyState }) => readyState === 'ended')"
    )
    assert page.evaluate("tracks.length") == 1
    page.wait_for_timeout(300)
    assert asked == []


def test_dialogue(open_page):
    page = open_page({"model": "chat"})
    page.uncheck("#sample")
    page.fill("#turn", "Hi")
    page.keyboard.press("Enter")
    said = page.locator(".turns .said")
    api.expect(said).to_have_text(["Hi", "You say: Hi"])
    assert page.input_value("#turn") == ""
    expect(page, ".turns .read >> nth=0").to_have_text("read: 100%")
    page.fill("#turn", HOSTILE)
    page.click("text=Send")
    api.expect(said).to_have_count(4)
    expect(page, ".turns .read").to_have_text(
        ["not read", "read: 75%", "read: 25%", ""]
    )
    assert texts(page, ".said")[2:] == [HOSTILE, f"You say: {HOSTILE}"]
    page.context.set_offline(True)
    page.fill("#turn", "lost")
    page.click("text=Send")
    expect(page, ".dialogue .message").to_contain_text("does not answer")
    assert page.input_value("#turn") == "lost"
    page.click("text=New conversation")
    api.expect(said).to_have_count(0)


def test_a_dialogue_is_drawn_at_random(open_page):
    page = open_page({"model": "chat"})
    seeds = []
    for turn, temperature, top_p, numbers in (
        ("Hi", "0.7", "0.9", "0.70 0.90"),
        ("Hi", "1.5", "0.5", "1.50 0.50"),
        ("Hi", "", "", "0.70 0.90"),
    ):
        page.fill("#temperature", temperature)
        page.fill("#top-p", top_p)
        page.fill("#turn", turn)
        with page.expect_request("**:predict") as asked:
            page.click("text=Send")
        [sent_turns] = asked.value.post_data_json["instances"]
        seeds.append(sent_turns["seed"])
        expect(page, ".turns .said >> nth=-1").to_have_text(
            f"Drawn: Hi {numbers}"
        )
    assert len({*seeds}) == 3
    page.click("text=Attention of the last answer")
    expect(page, ".heat-map th[scope=row]").to_have_text(["You", "end"])


def test_reset_starts_a_new_conversation(open_page):
    page = open_page({"model": "chat"})
    page.fill("#turn", "Hi")
    page.click("text=Send")
    expect(page, ".turns .said").to_have_count(2)
    page.fill("#turn", "/reset")
    page.keyboard.press("Enter")
    expect(page, ".turns .said").to_have_count(0)
    assert page.input_value("#turn") == ""
    expect(page, "[data-part=attention]").to_be_hidden()


def test_a_dialogue_is_bounded(open_page):
    """The turns that are sent are those of `kseq chat`."""
    page = open_page({"model": "chat"})
    sent_turns = []

    def answer(route):
        [given] = route.request.post_data_json["instances"]
        sent_turns.append(given["turns"])
        said = {"text": "Yes.", "score": 0, "truncated": False}
        route.fulfill(json={"predictions": [said]})

    page.route("**:predict", answer)
    page.uncheck("#sample")
    page.route(
        "**:predict",
        lambda route: (
            route.fulfill(status=500, json={"error": "none"})
            if "explain" in route.request.post_data
            else route.fallback()
        ),
    )
    for number in range(52):
        page.fill("#turn", str(number))
        page.keyboard.press("Enter")
        expect(page, ".turns .said >> nth=-1").to_have_text("Yes.")
        expect(page, ".turns .you .said >> nth=-1").to_have_text(str(number))
        expect(page, ".dialogue .message").to_contain_text("none")
    assert len(sent_turns[-1]) == 100
    assert sent_turns[-1][-1] == "51"
    expect(page, ".turns .said").to_have_count(100)


def test_language_model(open_page):
    page = open_page({"model": "writer"})
    page.fill("#text", "a")
    page.click("text=Continue")
    expect(page, ".written").to_have_text("a and a")
    assert texts(page, "mark") == [" and a"]
    assert page.input_value("#text") == "a and a"
    page.click("text=Continue")
    expect(page, ".written").to_have_text("a and a and a and a")
    page.reload()
    assert page.input_value("#text") == "a and a and a and a"


@pytest.fixture
def steps_of(store, monkeypatch):
    """Function that lets the steps of a model pass one by one."""
    made = []

    def make(name):
        made.append(Steps(store.find(name), monkeypatch))
        return made[-1]

    yield make
    for steps in made:
        steps.tickets.release(99)


def test_a_translation_appears_word_by_word(open_page, steps_of):
    page = open_page({"model": "streaming upper"})
    steps = steps_of("streaming upper")
    page.fill("#text", "a b")
    answer = expect(page, "[data-part=answer]")
    for shown in ("A", "A ", "A B"):
        steps.tickets.release()
        answer.to_have_text(shown, use_inner_text=False)
        expect(page, "[data-part=spoken]").to_have_text("")
    steps.tickets.release()
    expect(page, "[data-part=spoken]").to_have_text("A B")


def test_a_new_text_ends_the_old_answer(open_page, steps_of):
    page = open_page({"model": "streaming upper"})
    steps = steps_of("streaming upper")
    page.fill("#text", "old")
    steps.tickets.release()
    expect(page, "[data-part=answer]").to_have_text("O")
    page.fill("#text", "new")
    steps.tickets.release(99)
    expect(page, "[data-part=spoken]").to_have_text("NEW")
    expect(page, "[data-part=answer]").to_have_text("NEW")


def test_an_answer_that_breaks_off(open_page, store, monkeypatch):
    error = RequestError("enough", "RESOURCE_EXHAUSTED")
    fail_at(1, error, store.find("streaming upper"), monkeypatch)
    page = open_page({"model": "streaming upper", "text": "abc"})
    expect(page, ".column .message").to_contain_text("broke off")
    expect(page, ".column .message").to_contain_text("enough")
    expect(page, "[data-part=answer]").to_be_hidden()


def test_a_dialogue_word_by_word(open_page, steps_of):
    page = open_page({"model": "streaming chat"})
    steps = steps_of("streaming chat")
    said = page.locator(".turns .said")
    page.fill("#turn", "Hi")
    page.click("text=Send")
    for shown in ("H", "Hi", "Hi|"):
        steps.tickets.release()
        api.expect(said).to_have_text(["Hi", shown])
    assert page.locator(".turns").get_attribute("aria-busy") == "true"
    assert page.input_value("#turn") == "Hi"
    steps.tickets.release(99)
    expect(page, ".turns").not_to_have_attribute("aria-busy", "true")
    api.expect(said.nth(1)).to_contain_text("Hi|0.7|0.9|")
    assert page.input_value("#turn") == ""


def test_what_is_typed_during_an_answer_is_kept(open_page, steps_of):
    page = open_page({"model": "streaming chat"})
    steps = steps_of("streaming chat")
    page.fill("#turn", "Hi")
    page.click("text=Send")
    steps.tickets.release()
    expect(page, ".turns .said >> nth=-1").to_have_text("H")
    page.fill("#turn", "And then?")
    steps.tickets.release(99)
    expect(page, ".turns").not_to_have_attribute("aria-busy", "true")
    assert page.input_value("#turn") == "And then?"


def test_a_conversation_is_left_in_an_answer(open_page, steps_of):
    page = open_page({"model": "streaming chat"})
    steps = steps_of("streaming chat")
    said = page.locator(".turns .said")
    page.fill("#turn", "Hi")
    page.click("text=Send")
    steps.tickets.release()
    api.expect(said).to_have_text(["Hi", "H"])
    page.click("text=New conversation")
    steps.tickets.release(99)
    api.expect(said).to_have_count(0)
    page.fill("#turn", "Ho")
    page.click("text=Send")
    api.expect(said.nth(1)).to_contain_text("Ho|0.7|0.9|")


def test_an_answer_in_a_dialogue_breaks_off(open_page, store, monkeypatch):
    error = RequestError("enough", "RESOURCE_EXHAUSTED")
    fail_at(1, error, store.find("streaming chat"), monkeypatch)
    page = open_page({"model": "streaming chat"})
    page.fill("#turn", "Hi")
    page.click("text=Send")
    expect(page, ".dialogue .message").to_contain_text("enough")
    api.expect(page.locator(".turns .said")).to_have_count(0)
    assert page.input_value("#turn") == "Hi"


def test_a_text_is_continued_word_by_word(open_page, steps_of):
    page = open_page({"model": "streaming writer"})
    steps = steps_of("streaming writer")
    page.fill("#temperature", "0.5")
    page.fill("#text", "ab")
    page.click("text=Continue")
    for shown in ("a", "ab", "ab|"):
        steps.tickets.release()
        expect(page, "mark").to_have_text(shown)
    steps.tickets.release(99)
    expect(page, ".written").not_to_have_attribute("aria-busy", "true")
    expect(page, "mark").to_contain_text("ab|0.5|0.9|")
    assert page.input_value("#text").startswith("abab|0.5|0.9|")
    page.uncheck("#sample")
    page.fill("#text", "x")
    page.click("text=Continue")
    expect(page, "mark").to_have_text("x")


def test_any_other_model(open_page):
    page = open_page({"model": "numbers"})
    assert '"signature_name": "serving_default"' in page.input_value("#request")
    page.fill("#request", '{"instances": [[1, 2], [3, 4.5]]}')
    page.click("text=Send")
    expect(page, "pre").to_contain_text("9")
    page.fill("#request", "{")
    page.click("text=Send")
    expect(page, ".form .message").to_contain_text("JSON Parse error")


def test_a_request_that_another_one_overtakes(open_page):
    page = open_page({"model": "numbers"})
    page.route("**:predict", lambda route: None, times=1)
    page.click("text=Send")
    page.fill("#request", '{"instances": [[1, 2], [3, 4.5]]}')
    with page.expect_event("requestfailed"):
        page.click("text=Send")
    expect(page, "pre").to_contain_text("9")
    expect(page, ".form .message").to_have_text("")
