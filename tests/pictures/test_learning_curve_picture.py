import importlib
import io
import math

import pytest
from PIL import Image

from kseq.pictures import learning_curve_picture

TRAINING = [{"step": step, "loss": 3 - step / 100} for step in (50, 100, 150)]
VALIDATION = {"step": 100, "val_loss": 2.5, "val_accuracy": 0.5}


def size(rows):
    return Image.open(io.BytesIO(learning_curve_picture(rows))).size


def test_one_panel_for_losses_and_one_for_a_score():
    width, height = size(TRAINING)
    for more in (VALIDATION, {**VALIDATION, "val_bleu": 20.0}):
        assert size([*TRAINING, more]) == (2 * width, height)


def test_the_score_is_the_first_that_is_no_loss(drawn):
    learning_curve_picture([*TRAINING, VALIDATION])
    assert drawn.axes[1].get_ylabel() == "accuracy"
    more = {"step": 50, "val_loss": 2, "val_exact_match": 0.1, "val_wer": 3}
    learning_curve_picture([VALIDATION, more, *TRAINING])
    assert drawn.axes[1].get_ylabel() == "exact match"
    [line] = drawn.axes[1].lines
    assert line.get_xydata().tolist() == [[50, 0.1]]


def test_last_values_count_and_others_are_left_out(drawn):
    again = [{"step": 100, "loss": 1.5}, {"step": 150, "loss": math.nan}]
    learning_curve_picture([*TRAINING, {"step": 200, "loss": None}, *again])
    [line] = drawn.axes[0].lines
    assert line.get_xydata().tolist() == [[50, 2.5], [100, 1.5]]


def test_a_single_loss_is_a_point(drawn):
    learning_curve_picture([*TRAINING[:1], VALIDATION])
    training, validation = drawn.axes[0].lines
    assert (training.get_marker(), validation.get_marker()) == (".", ".")


@pytest.mark.parametrize("rows", [[], [{"step": 5, "val_bleu": 3.0}]])
def test_nothing_without_a_loss(rows):
    assert learning_curve_picture(rows) is None


@pytest.fixture
def drawn(monkeypatch):
    """What was drawn last."""

    class Drawn:
        axes = ()

        def png(self, figure):
            self.axes = figure.axes
            return b""

    found = Drawn()
    module = importlib.import_module("kseq.pictures.learning_curve_picture")
    monkeypatch.setattr(module, "figure_to_png", found.png)
    return found
