"""A picture with attention laid over it: in TensorBoard, and on a page."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from kseq.pictures import attention_page, grid_picture
from kseq.pictures.grid_picture import decoded_picture
from kseq.serving import Attention
from tests.pictures.pixels import grey

CELLS = [f"{row},{column}" for row in (1, 2) for column in (1, 2, 3)]
TOKENS = ["▁a", "▁$1$", "▁<b>", "</s>"]
WEIGHTS = np.eye(6)[:4]


def encoded(kind):
    pixels = np.full((20, 30, 3), 200, np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", None])
def test_the_weights_are_seen(kind):
    picture = kind and encoded(kind)
    png = grid_picture(WEIGHTS, CELLS, TOKENS, picture)
    other = grid_picture(WEIGHTS[::-1], CELLS, TOKENS, picture)
    assert png == grid_picture(WEIGHTS, CELLS, TOKENS, picture)
    assert grey(png).shape == grey(other).shape
    # Cells without a weight are dark, others are not.
    assert (grey(png) < 100).mean() > 0.1
    assert (grey(png) != grey(other)).mean() > 0.02


@pytest.mark.parametrize(
    ("weights", "cells", "tokens"),
    [
        (np.zeros((1, 0)), [], ["</s>"]),
        (np.zeros((0, 6)), CELLS, []),
        (np.zeros((99, 6)), CELLS, ["▁a"] * 99),
    ],
)
def test_extremes_are_drawn(weights, cells, tokens):
    assert grid_picture(weights, cells, tokens).startswith(b"\x89PNG")
    page = attention_page(
        [Attention(cells, tokens, weights, False, b"")], of_pictures=True
    )
    assert "<!doctype html>" in page


def test_a_page_shades_the_cells_without_weight():
    page = attention_page(
        [Attention(CELLS, TOKENS, WEIGHTS, False, encoded("PNG"))],
        of_pictures=True,
    )
    cells = re.findall(r'<b style="(.*?)"></b>', page)
    assert len(cells) == 6
    for place, cell in enumerate(cells):
        shaded = set(re.findall(r"--t(\d):var\(--veil-9\)", cell))
        assert shaded == {"1", "2", "3", "4"} - {str(place + 1)}
    assert "img-src data:" in page
    assert "&lt;b&gt;" in page
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="https?:', page)


def test_text_has_no_images():
    page = attention_page([Attention(["▁a"], ["▁b"], np.ones((1, 1)))])
    assert "img-src" not in page


def test_a_picture_is_upright_under_the_attention():
    """As it is in the model, and in a browser."""
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, :8] = 255
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6  # to be turned clockwise
    Image.fromarray(pixels).save(file, "JPEG", exif=exif)
    found = decoded_picture(file.getvalue())
    assert found.shape == (16, 8, 3)
    assert found[:7].min() > 200 > 50 > found[9:].max()
