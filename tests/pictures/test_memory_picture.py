import importlib

import numpy as np
import pytest

from kseq.pictures import memory_picture
from tests.pictures.pixels import grey

module = importlib.import_module("kseq.pictures.memory_picture")


def uniform(steps, heads=1, slots=6):
    return np.full((steps, heads, slots), 1 / slots)


@pytest.mark.parametrize(
    ("steps", "value"),
    [(0, None), (0, np.nan), (1, 1.0), (301, None), (301, np.nan)],
)
def test_any_length_is_drawn(steps, value):
    bits = np.ones((steps, 2))
    targets = None if value is None else value * bits
    weights = uniform(steps)
    png = memory_picture(bits, bits, weights, weights, targets=targets)
    assert png.startswith(b"\x89PNG\r\n")
    assert min(grey(png).shape) > 100


def drawn(monkeypatch, *arguments, **options):
    """The images of the panels, by their names."""
    monkeypatch.setattr(module, "figure_to_png", lambda figure: figure)
    figure = memory_picture(*arguments, **options)
    return {
        axes.get_ylabel(): axes.get_images()[0].get_array()
        for axes in figure.axes
    }


def test_a_panel_for_each_head_with_time_to_the_right(monkeypatch):
    draw = np.random.default_rng(1)
    inputs, bits = draw.normal(size=(4, 3)), draw.random((4, 2))
    read = draw.dirichlet(np.ones(6), (4, 2))
    panels = drawn(monkeypatch, inputs, bits, read, uniform(4), targets=bits)
    assert list(panels) == [
        *("inputs", "targets", "outputs", "write", "read 1", "read 2"),
    ]
    np.testing.assert_array_equal(panels["inputs"], inputs.T)
    np.testing.assert_array_equal(panels["outputs"], bits.T)
    np.testing.assert_allclose(panels["write"], uniform(4)[:, 0].T)


def test_unused_slots_and_late_steps_are_left_out(monkeypatch):
    read = np.zeros((400, 1, 50))
    read[:, 0, 20] = 1
    bits = np.zeros((400, 2))
    panels = drawn(monkeypatch, bits, bits, read, uniform(400, slots=50))
    assert panels["read"].shape == (5, 300)
    np.testing.assert_array_equal(panels["read"].max(axis=1), [0, 0, 1, 0, 0])
    assert panels["write"].shape == (50, 300)  # none is used
    assert panels["inputs"].shape == (2, 300)


def test_dark_where_a_head_looks():
    bits = np.zeros((6, 2))
    here, there = np.eye(6)[:, None], np.eye(6)[::-1, None]
    one = grey(memory_picture(bits, bits, here, here))
    other = grey(memory_picture(bits, bits, there, here))
    assert one.shape == other.shape
    assert (one - other).max() > 200
