import base64
import io

import numpy as np
from PIL import Image

from kseq.pictures import memory_page
from kseq.serving import MemoryUse
from tests.pictures.test_document_page import ATTRIBUTES, TAGS, Page


def use_of(steps):
    bits, weights = np.ones((steps, 2)), np.full((steps, 1, 4), 0.25)
    return MemoryUse(bits, bits, weights, weights)


def test_outline():
    page = Page(memory_page(iter([use_of(3), use_of(0), use_of(301)])))
    assert "3 sequences" in page.text("title")
    names = [found["id"] for found in page.all("h2")]
    assert names == ["legend", "sequence-1", "sequence-2", "sequence-3"]
    assert page.text("article").count("The sequence is empty.") == 1
    first, last = page.all("img")
    assert first["alt"].endswith("over 3 steps")
    assert last["alt"].endswith("over 300 steps")
    assert "after the first 300" in " ".join(page.text("p").split())


def test_nothing_runs_and_nothing_is_fetched():
    page = Page(memory_page([use_of(1)]))
    assert {tag for tag, _ in page.elements} <= {*TAGS, "img"}
    found = {name for _, found in page.elements for name in found}
    assert found <= {*ATTRIBUTES, "src", "alt"}
    assert page.policy()[-1] == "img-src data:"


def test_pictures_are_in_the_page():
    [image] = Page(memory_page([use_of(2)])).all("img")
    kind, _, content = image["src"].partition(",")
    assert kind == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
        assert picture.width > 100
